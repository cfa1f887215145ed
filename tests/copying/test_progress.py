"""The line by which a run says how far it is, and the thread that reads for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

import pytest

from ferry.clusters.internal_reader import InternalRecord
from ferry.copying.progress import Progress, ProgressObserver, beside, named_when_slow
from ferry.errors import ClusterUnreachable
from ferry.ledger.counters import Counters, MinMeanMax
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


def observed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> tuple[ProgressObserver, list[str]]:
    monkeypatch.setattr("ferry.copying.progress.InternalTopicReader", ledger)
    monkeypatch.setattr("ferry.copying.progress.INTERVAL_SECONDS", 0.001)
    said: list[str] = []
    return ProgressObserver(FLOW, "run-1", {0: 10, 1: 4}, Progress(offsets_total=100, lanes_total=1), said.append), said


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
    assert (observer.progress.offsets, observer.progress.counters.records, ledger.cluster) == (50, 40, FLOW.target)
    (line,) = said
    assert line.startswith("40 records, 1.0 MB, ")
    assert "50% of the offsets, about" in line
    assert ", 0.0 MB/s, " not in line


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
    assert line.startswith("40 records, 1.0 MB, ")
    assert again == ([told] if problem else []), "trouble that comes back is told again"
    assert observer.progress.counters.records == 40


def test_a_line_tells_what_was_copied_and_how_long_the_rest_takes() -> None:
    progress = Progress(offsets_total=4_000, lanes_total=3)
    assert progress.line(0.0) == "0 records, 0.0 MB, 0.0 MB/s, 0 of 3 lanes done, 0% of the offsets"
    progress.add(receipt(5, 505, 400, 1_000_000_000))
    progress.add(receipt(0, 500, 800, 234_500_000))
    progress.lanes_done += 1
    assert (progress.offsets, progress.counters.records, progress.counters.bytes) == (1_000, 1_200, 1_234_500_000)
    assert progress.line(20.0) == "1,200 records, 1,234.5 MB, 61.7 MB/s, 1 of 3 lanes done, 25% of the offsets, about 60 s left"
    assert ", 1,234,500.0 MB/s, " in progress.line(0.0), "not even a millisecond"


def test_at_the_end_nothing_is_left() -> None:
    progress = Progress(offsets_total=1_000, lanes_total=1, offsets=1_500)
    assert progress.line(1.0).endswith("0 of 1 lanes done, 100% of the offsets")
    assert Progress(offsets_total=0, lanes_total=0).line(1.0).endswith("100% of the offsets")
    assert Progress(offsets_total=1, lanes_total=1).line(1.0).endswith(" 0% of the offsets")


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


def test_a_receipt_that_grows_is_counted_once() -> None:
    progress = Progress(offsets_total=100, lanes_total=1)
    for entry in (receipt(0, 10, 9, 900), receipt(0, 30, 28, 2_800), receipt(0, 31, 29, 2_900), receipt(31, 40, 9, 900)):
        progress.add(entry)
    assert (progress.offsets, progress.counters.records, progress.counters.bytes) == (40, 38, 3_800)


def test_a_run_that_follows_says_how_old_the_newest_records_were() -> None:
    """Not those of the catch-up at its beginning, which are in the same receipt."""
    progress = Progress(offsets_total=0, lanes_total=1)
    assert progress.following(61.0) == "following for 61 s: 0 records, 0.0 MB"
    caught_up = MinMeanMax(20, 600_000.0, 3_600_000, 1_000)
    whole = receipt(0, 1_000, 1_000, 2_000_000)
    progress.add(replace(whole, counters=whole.counters._replace(replication_latency_ms=caught_up)))
    assert progress.following(61.0).endswith("1,000 records, 2.0 MB, the newest ones on average 600.0 s after their timestamps")
    for new in range(1, 4):
        delays = caught_up + MinMeanMax(100, 200.0, 400, new * 10)
        more = receipt(0, 1_000 + new * 10, 1_000 + new * 10, 2_000_000)
        progress.add(replace(more, counters=more.counters._replace(replication_latency_ms=delays)))
    assert progress.following(121.0).endswith("1,030 records, 2.0 MB, the newest ones on average 0.2 s after their timestamps")
    assert progress.following(181.0) == "following for 181 s: 1,030 records, 2.0 MB", "nothing has come since"


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
    assert (observer.progress.offsets, observer.progress.counters.records) == (60, 60)
