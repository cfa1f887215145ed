"""Jars are resolved once, whole, and their lack is explained."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ferry.cache import cache_directory
from ferry.errors import ArgumentError
from ferry.sandbox.jars import BROKER, KAFKA_VERSION, LOGGING, JarsMissing, broker_jars, java, resolve_jars


@pytest.mark.unit
def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ArgumentError, match="openjdk-17-jre-headless"):
        java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ArgumentError, match="JAVA_HOME"):
        java()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(mode=0o755)
    assert java() == str(tmp_path / "bin" / "java")


@pytest.mark.unit
def test_the_cache_directory_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path


@pytest.mark.unit
def test_a_cache_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ArgumentError, match=r"cache cannot be made \(Not a directory\): set FERRY_CACHE"):
        broker_jars()


@pytest.mark.brokers
def test_the_brokers_jars_can_log() -> None:
    names = {jar.name for jar in broker_jars().iterdir()}
    assert {f"{artifact}-{version}.jar" for _, artifact, version in BROKER} <= names
    assert f"kafka-clients-{KAFKA_VERSION}.jar" in names


@pytest.mark.brokers
def test_a_set_is_resolved_once_and_by_its_coordinates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: resolve_jars("logging", [LOGGING]), range(2)))
    assert found[0] == found[1]
    assert {jar.name for jar in found[0].iterdir()} == {"slf4j-simple-1.7.36.jar", "slf4j-api-1.7.36.jar"}
    # What is there is used as it is; the same name with other coordinates is another set, and fails by itself.
    (found[0] / "mark").touch()
    assert (resolve_jars("logging", [LOGGING]) / "mark").exists()
    with pytest.raises(JarsMissing, match=r"org\.apache\.kafka:no-such-artifact:0"):
        resolve_jars("logging", [("org.apache.kafka", "no-such-artifact", "0")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ivy", found[0].name, "resolve.lock"]
