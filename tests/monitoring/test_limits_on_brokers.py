"""Limits on real brokers: what `ferry run` and `ferry status` say and end with; the quick look after a run sees what status sees."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Lab
from tests.opened import flow_status, keep_lag, status_after_run

from ferry.config import load_config
from ferry.errors import ExitCode
from ferry.ledger.run_summary import RunLag
from ferry.monitoring.runs_reading import read_runs

pytestmark = pytest.mark.brokers

FERRY = Path(sys.executable).with_name("ferry")


def ferry(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(FERRY), *arguments], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.long
def test_a_broken_limit_is_named_until_the_topic_is_copied(lab: Lab) -> None:
    copied, left = (lab.topic(lab.source, partitions=2, config={"retention.ms": "3600000"}) for _ in range(2))
    for topic in (copied, left):
        lab.produce(lab.source, topic, [(number % 2, None, b"x" * 100) for number in range(20)])
    limits = ("A->B.ferry.alert.lag.records = 19", "A->B.ferry.alert.headroom.seconds = 7200")
    config = lab.config(f"A->B.topics = {copied}, {left}", *limits, *lab.copy_only)
    flow = load_config(config).flows[0]
    arguments = (str(config), "--flow", flow.name)

    run = ferry("run", *arguments, "--topic", copied, "--master", "inline", "--json")
    assert run.returncode == ExitCode.PARTLY_FAILED, run.stderr
    assert json.loads(run.stdout)["totals"]["records"] == 20
    assert json.loads(run.stdout)["exit_code"] == ExitCode.DONE
    (said,) = [line for line in run.stderr.splitlines() if "LimitsBroken" in line]
    assert re.search(rf"topic {left}: the source deletes uncopied records in \d+ min, below ferry.alert.headroom.seconds=7200", said)
    assert f"topic {left} is 20 records behind, above ferry.alert.lag.records=19; next: start a run now, and raise" in said
    assert copied not in said

    (kept,) = read_runs(flow)["runs"]
    assert (kept["records"], kept["lag_records"], 3_500 < kept["headroom_seconds"] < 3_600) == (20, 20, True)
    assert keep_lag(flow, kept["run_id"], RunLag(1, 2.0, None)) == ""
    assert read_runs(flow)["runs"][0]["lag_records"] == 1

    status = ferry("status", *arguments, "--json")
    assert status.returncode == ExitCode.PARTLY_FAILED
    (found,) = json.loads(status.stdout)["flows"]
    assert [(entry["key"], entry["topic"]) for entry in found["limits_broken"]] == [
        ("ferry.alert.headroom.seconds", left),
        ("ferry.alert.lag.records", left),
    ]
    quick, whole = status_after_run(flow), flow_status(flow)
    for seen, known in zip(quick.partitions, whole.partitions, strict=True):
        assert (seen.topic, seen.partition, seen.position, seen.end, seen.lag_records) == (
            known.topic, known.partition, known.position, known.end, known.lag_records,
        )  # fmt: skip
        assert abs(seen.lag_seconds - known.lag_seconds) < 60
        assert (seen.headroom_seconds is None) is (known.headroom_seconds is None)
    assert [entry.key for entry in quick.broken] == [entry.key for entry in whole.broken]

    again = ferry("run", *arguments, "--master", "inline")
    assert again.returncode == ExitCode.DONE, again.stderr
    assert "LimitsBroken" not in again.stderr
    assert ferry("status", *arguments).returncode == ExitCode.DONE
