"""What a run keeps of the syncs that it has done, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.logs.internal_batches import KeyValue
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked
from ferry.copying.request import RunRequest
from ferry.errors import ClusterUnreachable
from ferry.ledger.state import SyncDone
from ferry.ledger.sync_outcome import SyncOutcome
from ferry.pipeline import run as module
from ferry.pipeline import syncs
from ferry.pipeline.run import LAST_KEEP_SECONDS, Run
from ferry.syncs.names import SyncName

pytestmark = pytest.mark.unit

NAMES = [SyncName.CONFIGS, SyncName.ACLS, SyncName.HEARTBEAT]


class Target:
    """A target that takes records unless it is away. `act` is what the next sync does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.away, self.taken, self.waits = False, list[tuple[str, int]](), list[float | None]()
        self.act: Callable[[], None] = lambda: None
        monkeypatch.setattr(syncs, "append_records", self._append)
        monkeypatch.setattr(syncs, "ask_syncs_done", lambda _: Asked(dict))
        monkeypatch.setattr(syncs, "FUNCTIONS", dict.fromkeys(SyncName, self._sync))
        flow: Any = SimpleNamespace(runs_topic="runs", state_topic="state", target="B", setting=lambda *_: 1)
        opened: Any = SimpleNamespace(flow=flow, target=None)
        self.run = Run(opened, RunRequest("A->B", "one"))
        self.run._prepared = True

    def _sync(self, _: object, **_options: bool) -> SyncOutcome:
        self.act()
        return SyncOutcome()

    def _append(self, _: object, records: Mapping[str, list[KeyValue]], *, seconds: float | None) -> None:
        self.waits.append(seconds)
        if self.away:
            self.away = False
            raise ClusterUnreachable("cluster B: away")
        self.taken += [(topic, len(pairs)) for topic, pairs in records.items()]


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    return Target(monkeypatch)


def test_syncs_are_kept_when_the_caller_stops(target: Target) -> None:
    def interrupted() -> None:
        for number, _ in enumerate(target.run.sync(NAMES)):
            if number:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.taken == [("runs", 2), ("state", 2)]


def test_after_a_copy_by_another_process_the_state_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[str] = []
    opened: Any = SimpleNamespace(flow=SimpleNamespace(), anew=lambda: did.append("forgot"))
    planned = SimpleNamespace(needs_preparation=False, needs_copy=True)
    monkeypatch.setattr(module, "plan_run", lambda *_: planned)
    run = Run(opened, RunRequest("A->B", "one"))
    run.move_records(lambda: did.append("copied"), lambda _: None)
    planned.needs_copy = False
    run.move_records(lambda: did.append("copied"), lambda _: None)
    assert did == ["copied", "forgot"]


def test_syncs_are_kept_when_a_later_one_ends_the_run(target: Target) -> None:
    done = target.run.sync(NAMES)
    next(done)
    target.act = lambda: {}["a defect"]
    with pytest.raises(KeyError):
        next(done)
    assert target.taken == [("runs", 1), ("state", 1)]


def test_syncs_that_could_not_be_written_are_written_again(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    monkeypatch.setattr(module, "KEEP_SECONDS", 0.0)
    target.away = True
    with pytest.raises(ClusterUnreachable):
        next(target.run.sync(NAMES))
    assert target.taken == [("runs", 1), ("state", 1)]


def test_an_error_is_told_also_when_the_target_takes_nothing(target: Target) -> None:
    done = target.run.sync(NAMES)
    next(done)
    target.act, target.away = (lambda: {}["a defect"]), True
    with pytest.raises(KeyError):
        next(done)
    assert (target.taken, target.waits) == ([], [LAST_KEEP_SECONDS])


def test_syncs_of_a_few_seconds_are_written_together(target: Target) -> None:
    assert len(list(target.run.sync(NAMES))) == len(NAMES)
    assert target.taken == [("runs", 3), ("state", 3)]


@pytest.mark.parametrize(
    ("age", "soon", "due"), [(539, 60.0, False), (541, 60.0, True), (541, 0.0, False), (601, 0.0, True), (-5, 60.0, True)]
)
def test_a_sync_that_will_be_due_soon_is_not_left_out(
    monkeypatch: pytest.MonkeyPatch, target: Target, age: int, soon: float, due: bool
) -> None:
    done = {SyncName.ACLS.value: SyncDone(SyncName.ACLS.value, 1_000_000)}
    monkeypatch.setattr(syncs, "ask_syncs_done", lambda _: Asked(lambda: done))
    monkeypatch.setattr(syncs.clock, "time", lambda: 1_000.0 + age)
    target.run.flow.setting = lambda *_: 600  # type: ignore[method-assign]
    found = {name for name in NAMES if syncs.Syncs(target.run.opened).not_due(name, soon)}
    assert found == (set() if due else {SyncName.ACLS})
    assert target.taken == [], "it writes nothing"


def test_what_a_copy_needs_is_always_due(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    """A schema that was registered since the last sync would be missing on the target."""
    done = {name.value: SyncDone(name.value, 1_000_000) for name in SyncName}
    monkeypatch.setattr(syncs, "ask_syncs_done", lambda _: Asked(lambda: done))
    monkeypatch.setattr(syncs.clock, "time", lambda: 1_001.0)
    target.run.flow.setting = lambda *_: 600  # type: ignore[method-assign]
    assert not syncs.Syncs(target.run.opened).not_due(SyncName.SCHEMAS)
    assert syncs.Syncs(target.run.opened).not_due(SyncName.CONFIGS)


@pytest.mark.parametrize(
    ("seconds", "failed", "expected"),
    [(899.0, [], {("t", 1)}), (901.0, [], None), (1.0, ["t-0"], None)],
    ids=["the plan has seen everything", "the plan is old", "the plan has not seen everything"],
)
def test_after_the_copy_only_old_transactions_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, seconds: float, failed: list[str], expected: set[tuple[str, int]] | None
) -> None:
    opened: Any = SimpleNamespace(flow=SimpleNamespace(open_transaction_warn_ms=900_000))
    planned = SimpleNamespace(last_stable_lags=[SimpleNamespace(held=TopicPartition("t", 1))], failed=failed)
    now = 1_000.0
    monkeypatch.setattr(module, "plan_run", lambda *_: planned)
    monkeypatch.setattr(module.clock, "monotonic", lambda: now)
    run = Run(opened, RunRequest("A->B", "one"))
    assert run._lagging() is None, "nothing was planned here"
    assert run.plan is planned
    now += seconds
    assert run._lagging() == expected
