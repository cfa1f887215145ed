"""When the driver's JVM may archive its classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.spark.settings import ClassArchive

pytestmark = pytest.mark.unit

VARIABLES = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark that has no configuration, and a cache without an archive."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FERRY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "spark"


def test_it_is_written_when_the_class_path_has_only_jars(home: Path) -> None:
    assert "-XX:ArchiveClassesAtExit=" in ClassArchive(home).use_or_write


@pytest.mark.parametrize("name", ["", *VARIABLES])
def test_it_is_not_written_when_the_class_path_has_a_directory(home: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = home / "conf"
    directory.mkdir(parents=True)
    if name:
        directory = directory.rename(home / "elsewhere")
        monkeypatch.setenv(name, str(directory))
    assert ClassArchive(home).use_or_write == ""


def test_an_archive_that_is_there_is_used(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = ClassArchive(home)
    archive.path.parent.mkdir()
    archive.path.touch()
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert ClassArchive(home).use_or_write == ClassArchive(home).use != ""
