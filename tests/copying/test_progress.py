"""The line by which a run says how far it is, and the thread that reads for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Self

import pytest
from tests.waiting import until

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.committed import Committed
from ferry.copying.progress import ProgressObserver, beside, named_when_slow
from ferry.copying.request import RunRequest
from ferry.errors import ClusterUnreachable
from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind, decode_receipt, encode_receipt

pytestmark = pytest.mark.unit


def receipt(start: int, end: int, records: int, size: int) -> Receipt:
    return Receipt(ReceiptKind.COPIED, "t", 0, "id", "A.t", "id", start, end, counters=Counters(records=records, bytes=size))


class Ledger:
    """Answers each look by script: records, or an error; then nothing more."""

    def __init__(self, *looks: list[InternalRecord] | Exception) -> None:
        self.looks, self.asked, self.cluster = list(looks), list[tuple[str, dict[int, int], bool]](), None
        self.idle, self.closed = threading.Event(), threading.Event()

    def __call__(self, cluster: Any) -> Self:
        self.cluster = cluster
        return self

    def __enter__(self) -> Self:
        return self

    def reader(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()

    def read(self, topic: str, positions: dict[int, int], *, complete: bool) -> Iterator[InternalRecord]:
        self.asked.append((topic, dict(positions), complete))
        if not self.looks:
            self.idle.set()
            return
        look = self.looks.pop(0)
        if isinstance(look, Exception):
            raise look
        yield from look


FLOW: Any = SimpleNamespace(ledger_topic="mm2-ferry-ledger.A.internal", target=SimpleNamespace(alias="B"))


def observed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, *, follow_until: datetime | None = None, watched: bool = False
) -> tuple[ProgressObserver, list[str]]:
    monkeypatch.setattr("ferry.copying.progress.open_cluster", ledger)
    monkeypatch.setattr("ferry.copying.progress.INTERVAL_SECONDS", 0.001)
    said: list[str] = []
    request = RunRequest("A->B", "run-1", follow_until=follow_until, watched=watched)
    committed = Committed(follows=True) if follow_until else Committed({TopicPartition("t", 0): 100})
    return ProgressObserver(FLOW, request, {0: 10, 1: 4}, committed, said.append), said


def test_what_this_run_copied_is_counted_once_and_said_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    own = encode_receipt(replace(receipt(0, 50, 40, 1_000_000), run_id="run-1"))
    other = encode_receipt(replace(receipt(50, 99, 7, 3), run_id="run-0"))
    ledger = Ledger([InternalRecord(1, 4, 0, *own), InternalRecord(1, 5, 0, *other), InternalRecord(0, 12, 0, b"old", None)], [])
    observer, said = observed(ledger, monkeypatch)
    with beside("ferry-progress", observer.watch):
        assert ledger.idle.wait(30)
    assert ledger.closed.is_set(), "the end waits for the last look"
    topic = "mm2-ferry-ledger.A.internal"
    assert ledger.asked[:2] == [(topic, {0: 10, 1: 4}, False), (topic, {0: 13, 1: 6}, False)]
    assert (observer.committed.records, ledger.cluster) == (50, FLOW.target)
    (line,) = said
    assert line.startswith("50 of 100 records (50%)")


def test_a_look_that_hangs_holds_up_neither_the_run_nor_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    looking, enough = threading.Event(), threading.Event()

    class Hanging(Ledger):
        def read(self, topic: str, positions: dict[int, int], *, complete: bool) -> Iterator[InternalRecord]:
            looking.set()
            enough.wait(60)
            return super().read(topic, positions, complete=complete)

    monkeypatch.setattr("ferry.copying.progress.JOIN_SECONDS", 0.01)
    ledger = Hanging()
    observer, _ = observed(ledger, monkeypatch)
    with beside("ferry-progress", observer.watch):
        assert looking.wait(30)
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "ferry-progress"]
        assert thread.daemon
    assert not ledger.closed.is_set()
    enough.set()
    thread.join(30)
    assert ledger.closed.is_set()


@pytest.mark.parametrize("problem", [ClusterUnreachable("cluster B: gone"), None])
def test_a_ledger_that_cannot_be_read_is_told_once_and_read_again(problem: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    trouble = problem or [InternalRecord(0, 10, 0, b"{}", b"{}")]
    copied = [InternalRecord(0, 11, 0, *encode_receipt(replace(receipt(0, 50, 40, 1_000_000), run_id="run-1")))]
    ledger = Ledger(trouble, *([problem] * 3 if problem else []), copied, *([problem] if problem else []))
    observer, said = observed(ledger, monkeypatch)
    with beside("ferry-progress", observer.watch):
        assert ledger.idle.wait(30)
    why = "cluster B: gone" if problem else "cluster B: topic mm2-ferry-ledger.A.internal"
    told, line, *again = said
    assert "the copy goes on" in told
    assert why in told
    assert line.startswith("50 of 100 records (50%)")
    assert again == ([told] if problem else []), "trouble that comes back is told again"
    assert observer.committed.records == 50


def test_a_slow_step_is_named_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferry.copying.progress.FIRST_SECONDS", 0.001)
    monkeypatch.setattr("ferry.copying.progress.REPEAT_SECONDS", 0.001)
    said: list[str] = []
    twice = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        if len(said) > 1:
            twice.set()

    with named_when_slow(say, "planning the lanes"):
        assert twice.wait(30)
    over = len(said)
    assert set(said) == {"still planning the lanes (0 s)"}
    assert "ferry-slow-step" not in [thread.name for thread in threading.enumerate()]
    assert len(said) == over


def test_a_quick_step_is_not_named_and_its_error_passes() -> None:
    said: list[str] = []
    with pytest.raises(KeyError), named_when_slow(said.append, "planning the lanes"):
        raise KeyError
    assert said == []


def test_a_receipt_that_has_grown_since_the_last_look_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []

    def counting(key: bytes, value: bytes, where: str) -> Receipt:
        decoded.append(key)
        return decode_receipt(key, value, where)

    grown = [encode_receipt(replace(receipt(0, end, end, end * 10), run_id="run-1")) for end in range(10, 60, 10)]
    after = encode_receipt(replace(receipt(50, 60, 10, 100), run_id="run-1"))
    ledger = Ledger([InternalRecord(0, number, 0, *pair) for number, pair in enumerate([*grown, after])])
    observer, _ = observed(ledger, monkeypatch)
    monkeypatch.setattr("ferry.copying.progress.decode_receipt", counting)
    with beside("ferry-progress", observer.watch):
        assert ledger.idle.wait(30)
    assert decoded == [grown[0][0], after[0]]
    assert observer.committed.records == 60


@pytest.mark.parametrize("watched", [False, True])
def test_a_log_hears_once_a_minute_of_a_run_that_follows_and_a_terminal_at_each_look(
    watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    observer, said = observed(ledger, monkeypatch, follow_until=datetime.now(UTC), watched=watched)
    with beside("ferry-progress", observer.watch):
        until(lambda: len(ledger.asked) > 5)
    assert set(said) == {"following: 0 records"}
    assert (len(said) > 1) is watched
