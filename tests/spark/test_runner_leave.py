"""What becomes of lanes at work when a run that follows has lost the flow."""

from __future__ import annotations

import threading
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import NEVER_SECONDS

from ferry.spark.runner import run_groups

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("leave", [0.0, NEVER_SECONDS])
def test_lanes_may_end_by_themselves_before_they_are_ended(leave: float) -> None:
    ends, seen = threading.Event(), list[str]()

    def collect() -> list[Any]:
        assert ends.wait(NEVER_SECONDS)
        seen.append("ended")
        return []

    def cancel() -> None:
        seen.append("cancelled")
        ends.set()

    job = SimpleNamespace(collect=collect)
    parallelize = SimpleNamespace(mapPartitions=lambda _: job)
    context: Any = SimpleNamespace(master="local[2]", getConf=dict, parallelize=lambda *_: parallelize, cancelAllJobs=cancel)
    results = run_groups(context, deque([["lane"]]), iter, print, width=1, look=0.001, leave=leave)
    assert next(results) == ([], [])
    if leave:
        threading.Timer(0.05, ends.set).start()
    results.close()
    assert seen == (["ended", "cancelled"] if leave else ["cancelled", "ended"])
