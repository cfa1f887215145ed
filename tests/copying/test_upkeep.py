"""The upkeep of the ledger beside the lanes of a run that follows: it stops neither the driver nor the run."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import until

from ferry.clusters.net.shared_connection import Asked
from ferry.copying import upkeep
from ferry.copying.upkeep import UpkeepBeside
from ferry.errors import ClusterUnreachable, Superseded
from ferry.ledger.state import FlowRecord

pytestmark = pytest.mark.unit

DONE: Any = SimpleNamespace(replaced=[1, 2], merged=[3], left=40)
FLOW: Any = SimpleNamespace(source=None, target=None)


class Lease:
    """Only the thread that made it may use it."""

    def __init__(self) -> None:
        self.record, self.confirmed, self._thread = FlowRecord("A->B", 8), 0, threading.current_thread()

    def confirm(self) -> None:
        assert threading.current_thread() is self._thread
        self.confirmed += 1

    def write_record(self, **changes: Any) -> None:
        assert threading.current_thread() is self._thread
        self.record = replace(self.record, **changes)


class Ledger:
    """Its compaction takes until `go_on`, and then fails with `problem`, if there is one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.go_on, self.said = threading.Event(), list[str]()
        self.problem: Exception | None = None
        patch.setattr(upkeep, "ask_held_ever", lambda _: Asked(lambda: 100_000))
        patch.setattr(upkeep, "compact_ledger", self._compact)
        patch.setattr(upkeep, "index_losses", lambda *_: "index")
        self.beside = UpkeepBeside(FLOW, "ledger-1", self.said.append)

    def _compact(self, _: object) -> Any:
        self.go_on.wait()
        if self.problem is not None:
            raise self.problem
        return DONE


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    return Ledger(monkeypatch)


def test_the_driver_goes_on_meanwhile_and_writes_what_was_done(ledger: Ledger) -> None:
    lease: Any = Lease()
    for _ in range(3):
        ledger.beside.look(lease)
    assert (lease.record, lease.confirmed) == (FlowRecord("A->B", 8), 1)
    ledger.go_on.set()

    def is_written() -> bool:
        ledger.beside.look(lease)
        return bool(lease.record.tidied)

    until(is_written)
    assert lease.record == FlowRecord("A->B", 8, tidied=100_000, receipts=40, losses="index")  # type: ignore[arg-type]
    assert ledger.said == ["ledger: 3 receipts became 1"]


def test_the_end_of_the_run_waits_for_it(ledger: Ledger) -> None:
    lease: Any = Lease()
    ledger.beside.look(lease)
    threading.Timer(0.05, ledger.go_on.set).start()
    ledger.beside.end(lease)
    assert lease.record.tidied == 100_000


@pytest.mark.parametrize("problem", [ClusterUnreachable("cluster B: gone"), Superseded("somebody else compacts")])
def test_a_failure_is_said_and_does_not_end_the_run(ledger: Ledger, problem: Exception, caplog: pytest.LogCaptureFixture) -> None:
    lease: Any = Lease()
    ledger.problem = problem
    ledger.beside.look(lease)
    ledger.go_on.set()
    ledger.beside.end(lease)
    assert lease.record.tidied == 0
    assert str(problem) in "".join([*ledger.said, caplog.text])


def test_a_run_that_has_lost_the_flow_does_not_begin(ledger: Ledger) -> None:
    def refuse() -> None:
        raise Superseded("a newer run took over")

    lease: Any = SimpleNamespace(confirm=refuse, record=FlowRecord("A->B", 8))
    with pytest.raises(Superseded):
        ledger.beside.look(lease)
    ledger.beside.end(lease)
