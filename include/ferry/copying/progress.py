"""Says how far a run is: names steps that take long, and reports the progress of the copy.

The progress is read from the receipts of committed transactions: a thread reads the new receipts of the ledger every few seconds. So it
needs nothing from the workers, and works with every runner. If it cannot read them, it says so once and tries again: the copy does not
depend on it.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.partitions import TopicPartition
from ferry.config import Flow
from ferry.errors import FerryError, count_of
from ferry.ledger.counters import ZERO, Counters
from ferry.ledger.formats import place_of
from ferry.ledger.receipts import Receipt, decode_receipt

INTERVAL_SECONDS = 2.0
# A run that follows says once a minute how it is: the log of an Airflow task is read by people.
FOLLOW_INTERVAL_SECONDS = 60.0
# A thread that takes long must not delay the end of a run.
JOIN_SECONDS = 5.0
# On idle machines and clusters a step takes less than this. Users would take a run that prints nothing for minutes for dead.
FIRST_SECONDS = 5.0
REPEAT_SECONDS = 15.0


@contextmanager
def beside(name: str, watch: Callable[[threading.Event], None]) -> Iterator[None]:
    """Call `watch` in a thread with this name, until the block has ended; the event says so."""
    over = threading.Event()
    thread = threading.Thread(target=watch, args=(over,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(JOIN_SECONDS)


def named_when_slow(say: Callable[[str], None], doing: str) -> AbstractContextManager[None]:
    """Say `doing` when the block has taken FIRST_SECONDS, and every REPEAT_SECONDS after that until it ends."""
    began = time.monotonic()

    def tell(over: threading.Event) -> None:
        pause = FIRST_SECONDS
        while not over.wait(pause):
            say(f"still {doing} ({time.monotonic() - began:.0f} s)")
            pause = REPEAT_SECONDS

    return beside("ferry-slow-step", tell)


@dataclass
class Progress:
    """Sums over the receipts of a run so far, and the totals to copy. Receipts of a run that follows grow: the newest of a key counts."""

    offsets_total: int
    lanes_total: int
    offsets: int = 0
    counters: Counters = ZERO
    lanes_done: int = 0
    _newest: dict[TopicPartition, Receipt] = field(default_factory=dict)
    # Of the records since the last line of a run that follows: how old they were when they were committed, in ms, and how many these are.
    _delays: float = 0.0
    _delayed: int = 0

    def add(self, receipt: Receipt) -> None:
        last = self._newest.get(receipt.key)
        self._newest[receipt.key] = receipt
        grown = last is not None and (last.kind, last.upstream_start) == (receipt.kind, receipt.upstream_start)
        start, before = (last.upstream_end, last.counters) if last is not None and grown else (receipt.upstream_start, ZERO)
        self.offsets += receipt.upstream_end - start
        self.counters += receipt.counters.since(before)
        for delay, sign in ((receipt.counters.replication_latency_ms, 1), (before.replication_latency_ms, -1)):
            if delay is not None:
                self._delays += sign * delay.mean * delay.count
                self._delayed += sign * delay.count

    def line(self, seconds: float) -> str:
        """One line for the log after `seconds` of copying."""
        share = min(1.0, self.offsets / self.offsets_total) if self.offsets_total else 1.0
        megabytes = self.counters.bytes / 1e6
        left = f", about {seconds * (1 - share) / share:.0f} s left" if 0 < share < 1 else ""
        return (
            f"{count_of(self.counters.records, 'record')}, {megabytes:,.1f} MB, {megabytes / max(seconds, 0.001):,.1f} MB/s, "
            f"{self.lanes_done} of {self.lanes_total} lanes done, {share:.0%} of the offsets{left}"
        )

    def following(self, seconds: float) -> str:
        """One line for the log of a run that has followed for `seconds`. The delay is that of the records since the last line."""
        megabytes = self.counters.bytes / 1e6
        said = f"following for {seconds:,.0f} s: {count_of(self.counters.records, 'record')}, {megabytes:,.1f} MB"
        delays, delayed, self._delays, self._delayed = self._delays, self._delayed, 0.0, 0
        return f"{said}, the newest ones on average {max(0.0, delays / delayed) / 1000:,.1f} s after their timestamps" if delayed else said


class ProgressObserver:
    def __init__(
        self,
        flow: Flow,
        run_id: str,
        ledger_ends: Mapping[int, int],
        progress: Progress,
        say: Callable[[str], None],
        *,
        follows: bool = False,
    ) -> None:
        self._flow, self._run_id, self._say, self._follows = flow, run_id, say, follows
        self._told_at = 0.0
        self._positions = dict(ledger_ends)
        self._came: dict[bytes, bytes] = {}  # read, not decoded: of a receipt that has grown, only the newest counts
        self.progress = progress
        self._readable = True
        self._started = time.monotonic()

    def watch(self, over: threading.Event) -> None:
        while not over.is_set():
            try:
                with InternalTopicReader(self._flow.target) as reader:
                    self._poll(reader, over)
            except FerryError as problem:
                if self._readable:
                    self._say(f"cannot read the progress now; the copy goes on, and Ferry tries again: {problem}")
                self._readable = False
                over.wait(INTERVAL_SECONDS)

    def _poll(self, reader: InternalTopicReader, over: threading.Event) -> None:
        while not over.wait(INTERVAL_SECONDS):
            before = self.progress.counters.records, self.progress.lanes_done
            self._read(reader)
            self._readable = True
            now = time.monotonic()
            if self._follows:
                if now - self._told_at >= FOLLOW_INTERVAL_SECONDS:
                    self._say(self.progress.following(now - self._started))
                    self._told_at = now
            elif (self.progress.counters.records, self.progress.lanes_done) != before:
                self._say(self.progress.line(now - self._started))

    def _read(self, reader: InternalTopicReader) -> None:
        topic = self._flow.ledger_topic
        for record in reader.read(topic, self._positions, complete=False):
            self._positions[record.partition] = record.offset + 1
            if record.value is not None:
                self._came[record.key] = record.value
        while self._came:
            key = next(iter(self._came))
            receipt = decode_receipt(key, self._came.pop(key), place_of(self._flow.target, topic))
            if receipt.run_id == self._run_id:
                self.progress.add(receipt)
