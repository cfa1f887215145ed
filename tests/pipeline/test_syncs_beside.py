"""Syncs beside a copy that follows: each at its own interval, and none of them stops the others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.net.shared_connection import Asked
from ferry.errors import ClusterUnreachable
from ferry.ledger.runs_topic import RunSync
from ferry.ledger.sync_outcome import SyncFailure, SyncOutcome
from ferry.pipeline import syncs_beside
from ferry.syncs.names import SYNCS, Sync, SyncName

pytestmark = pytest.mark.unit

ENABLED = (SyncName.CONFIGS, SyncName.HEARTBEAT, SyncName.GROUPS)


class Played:
    """The syncs: configs hang, heartbeats fail, groups work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.said: list[str] = []
        self.over, self.enough = threading.Event(), threading.Event()
        self.go_on, self.told = self.over, list[RunSync]()
        self.tried: Callable[[], None] = lambda: None
        played = self

        class Syncs:
            def __init__(self, *_: object, **__: object) -> None:
                self.name = ""

            def carry_out(self, name: SyncName, **_: object) -> SyncOutcome:
                self.name = name.value
                played.done[name.value] += 1
                if name is SyncName.CONFIGS:
                    played.go_on.wait()
                if name is SyncName.HEARTBEAT:
                    played.tried()
                if played.done["groups"] >= 3 and played.done["heartbeat"] >= 2:
                    played.enough.set()
                failed = (SyncFailure("heartbeat", "NotAuthorized", "no"),) if name is SyncName.HEARTBEAT else ()
                return SyncOutcome(sync=name.value, failed=failed)

            def keep(self) -> None:
                played.kept[self.name] += 1
                if self.name == "groups":
                    raise ClusterUnreachable("gone")

        monkeypatch.setattr(syncs_beside, "Syncs", Syncs)
        monkeypatch.setattr(syncs_beside, "not_enabled", lambda _, name: "" if name in ENABLED else "off")
        monkeypatch.setattr(syncs_beside, "ask_syncs_done", lambda _: Asked(dict))
        monkeypatch.setattr(syncs_beside, "write_run_record", lambda _, record: self.told.append(record))
        monkeypatch.setattr(syncs_beside, "FAILED_SECONDS", 0.01)
        monkeypatch.setattr(syncs_beside, "USUAL_SECONDS", 0.01)
        monkeypatch.setattr(syncs_beside, "SYNCS", dict.fromkeys(SYNCS, Sync("x.enabled")))

    def go(self) -> None:
        flow: Any = SimpleNamespace(source=None, target=None, setting=lambda _, default: default)
        work = threading.Thread(target=syncs_beside.sync_meanwhile, args=(flow, "run", self.said.append, self.over))
        work.start()
        assert self.enough.wait(60)
        self.over.set()
        work.join(60)
        assert not work.is_alive()


def test_a_sync_that_hangs_and_one_that_fails_do_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    played.go()
    assert played.done["configs"] == 1
    assert set(played.kept) == {"configs", "heartbeat", "groups"}
    assert [text.split(";")[0] for text in played.said if "failed" in text] == ["sync heartbeat failed"], "said once"
    assert any("gone" in text for text in played.said)


def test_a_first_failure_is_recorded_before_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """That one may wait for a minute, and the run may end meanwhile."""
    played = Played(monkeypatch)
    kept_when_tried: list[int] = []
    monkeypatch.setattr(played, "tried", lambda: kept_when_tried.append(played.kept["heartbeat"]))
    played.go()
    assert kept_when_tried[:2] == [0, 1]


@pytest.mark.parametrize("hangs_seconds", [0.0, 3_600.0])
def test_a_sync_that_hangs_when_the_run_ends_is_in_the_report(monkeypatch: pytest.MonkeyPatch, hangs_seconds: float) -> None:
    """The newer run does the syncs, so nobody else would say it. One that only takes long is not named."""
    played = Played(monkeypatch)
    played.go_on = threading.Event()
    monkeypatch.setattr(syncs_beside, "HANGS_SECONDS", hangs_seconds)
    monkeypatch.setattr(syncs_beside, "LAST_SECONDS", 1.0)
    played.go()
    played.go_on.set()
    told = {record.sync: record.outcome["failed"] for record in played.told}
    assert set(told) == ({"configs"} if not hangs_seconds else set())
    assert all(failure["error"] == "RunUnfinished" for failed in told.values() for failure in failed)
    assert any("sync configs: it had not ended after" in text for text in played.said) == (not hangs_seconds)
