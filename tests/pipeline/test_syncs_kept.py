"""How often a run writes what its syncs did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.net.shared_connection import Asked
from ferry.ledger.sync_outcome import SyncOutcome
from ferry.pipeline import syncs
from ferry.pipeline.syncs import Syncs
from ferry.syncs.names import SyncName

pytestmark = pytest.mark.unit


def test_what_a_sync_did_is_written_seldom_and_when_it_was_done_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now, written = [1_000.0], list[tuple[float, str, int]]()

    def append(_: object, records: Mapping[str, Sequence[object]], **_options: object) -> None:
        written.extend((now[0] - 1_000, topic, len(found)) for topic, found in records.items())

    clock = SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0], time_ms=lambda: int(now[0] * 1e3))
    monkeypatch.setattr(syncs, "clock", clock)
    monkeypatch.setattr(syncs, "append_records", append)
    monkeypatch.setattr(syncs, "ask_syncs_done", lambda _: Asked(dict))
    monkeypatch.setattr(syncs, "not_enabled", lambda *_: "")
    monkeypatch.setattr(syncs, "FUNCTIONS", dict.fromkeys(SyncName, lambda _, **_options: SyncOutcome()))
    flow: Any = SimpleNamespace(target=None, state_topic="state", runs_topic="runs")
    opened: Any = SimpleNamespace(flow=flow, target=None)
    made = Syncs(opened, run_id="run", topics_made=True, keep_seconds=60.0, report_seconds=600.0)
    for second in range(0, 601, 10):
        now[0] = 1_000.0 + second
        made.carry_out(SyncName.HEARTBEAT, on_request=True)
    made.keep()
    assert [entry for entry in written if entry[1] == "runs"] == [(600.0, "runs", 1)]
    assert [entry for entry in written if entry[1] == "state"] == [
        (at, "state", 1) for at in (60.0, 130.0, 200.0, 270.0, 340.0, 410.0, 480.0, 550.0, 600.0)
    ]
    made.keep()
    assert len(written) == 10, "nothing is left"
