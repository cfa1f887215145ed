"""Which runs of a command start Spark: those that are worth it, and those whose user asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.inside import ferry
from tests.conftest import Lab

from ferry.config import load_config
from ferry.errors import ExitCode

pytestmark = pytest.mark.brokers
RECORDS = 20


@pytest.mark.parametrize(("limit", "small"), [(RECORDS + 1, True), (RECORDS, False)])
def test_a_small_run_needs_no_spark(lab: Lab, monkeypatch: pytest.MonkeyPatch, limit: int, small: bool) -> None:
    monkeypatch.setenv("PATH", "/nowhere")  # so there is no Java
    monkeypatch.delenv("JAVA_HOME", raising=False)
    path, flow = _behind(lab, f"ferry.spark.offsets = {limit}")
    planned = ferry("plan", path, "--flow", flow)
    assert ("in its own process" if small else "Spark copies them") in planned.stdout
    done = ferry("run", path, "--flow", flow)
    assert done.returncode == (ExitCode.DONE if small else ExitCode.BAD_INPUT), done.stderr
    assert ("java is not installed" in done.stderr) != small


@pytest.mark.parametrize("options", [("--master", "local[1]"), ("--follow", "5s")])
def test_a_small_run_uses_spark_where_it_is_asked_for_or_follows(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, options: tuple[str, str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    path, flow = _behind(lab)
    done = ferry("run", path, "--flow", flow, *options)
    assert "java is not installed" in done.stderr


def _behind(lab: Lab, *lines: str) -> tuple[Path, str]:
    topic = lab.topic(lab.source, partitions=2)
    path = lab.config(f"topics = {topic}", "emit.heartbeats.enabled = false", *lines)
    lab.produce(lab.source, topic, [(number % 2, None, b"v") for number in range(RECORDS)])
    return path, load_config(path).flows[0].name
