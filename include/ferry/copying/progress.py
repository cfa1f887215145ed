"""Says how far a run is: names steps that take long, and reports the progress of the copy.

The progress is read from the receipts of committed transactions: a thread reads the new receipts of the ledger every few seconds. So it
works with every runner. If it cannot read them, it says so once and tries again: the copy does not depend on it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from ferry import clock
from ferry.clusters.logs.internal_reader import InternalRecord, InternalTopicReader
from ferry.clusters.open_cluster import open_cluster
from ferry.config import Flow
from ferry.copying.committed import Committed
from ferry.copying.request import RunRequest
from ferry.errors import FerryError
from ferry.ledger.formats import place_of
from ferry.ledger.receipts import decode_receipt

INTERVAL_SECONDS = 2.0
# A run that follows reports once a minute: people read the log of an Airflow task.
FOLLOW_INTERVAL_SECONDS = 60.0
# A thread that takes long must not delay the end of a run.
JOIN_SECONDS = 5.0
# On idle machines and clusters a step takes less than this. If a run printed nothing for minutes, users would think that it is dead.
FIRST_SECONDS = 5.0
REPEAT_SECONDS = 15.0


@contextmanager
def beside(name: str, watch: Callable[[clock.Event], None]) -> Iterator[None]:
    """Call `watch` in a thread with this name, until the block has ended; the event says so."""
    over = clock.Event()
    thread = clock.Thread(target=watch, args=(over,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(JOIN_SECONDS)


def named_when_slow(say: Callable[[str], None], doing: str) -> AbstractContextManager[None]:
    """Say `doing` when the block has taken FIRST_SECONDS, and every REPEAT_SECONDS after that until it ends."""
    began = clock.monotonic()

    def tell(over: clock.Event) -> None:
        pause = FIRST_SECONDS
        while not over.wait(pause):
            say(f"still {doing} ({clock.monotonic() - began:.0f} s)")
            pause = REPEAT_SECONDS

    return beside("ferry-slow-step", tell)


class ProgressObserver:
    def __init__(
        self, flow: Flow, request: RunRequest, ledger_ends: Mapping[int, int], committed: Committed, say: Callable[[str], None]
    ) -> None:
        """`ledger_ends`: where the ledger ended when this try began."""
        self._flow, self._request, self._say = flow, request, say
        rarely = request.follow_until is not None and not request.watched
        self._pause, self._told_at = (FOLLOW_INTERVAL_SECONDS if rarely else INTERVAL_SECONDS), 0.0
        self._positions = dict(ledger_ends)
        self._came: dict[bytes, InternalRecord] = {}  # read, not decoded: of a receipt that has grown, only the newest counts
        self.committed = committed
        self._readable = True

    def watch(self, over: clock.Event) -> None:
        while not over.is_set():
            try:
                with open_cluster(self._flow.target) as target:
                    self._poll(target.reader(), over)
            except FerryError as problem:
                if self._readable:
                    self._say(f"cannot read the progress now; the copy goes on, and Ferry tries again: {problem}")
                self._readable = False
                over.wait(INTERVAL_SECONDS)

    def _poll(self, reader: InternalTopicReader, over: clock.Event) -> None:
        while not over.wait(INTERVAL_SECONDS):
            before = self.committed.records
            self._read(reader)
            self._readable = True
            news = self.committed.follows or self.committed.records != before
            if news and clock.monotonic() - self._told_at >= self._pause:
                self._say(self.committed.progress(clock.time()).text)
                self._told_at = clock.monotonic()

    def _read(self, reader: InternalTopicReader) -> None:
        topic = self._flow.ledger_topic
        for record in reader.read(topic, self._positions, complete=False):
            self._positions[record.partition] = record.offset + 1
            if record.value is not None:
                self._came[record.key] = record
        while self._came:
            key = next(iter(self._came))
            record = self._came.pop(key)
            receipt = decode_receipt(key, record.value or b"", place_of(self._flow.target, topic))
            if receipt.run_id == self._request.run_id:
                self.committed.add(receipt, record.timestamp / 1000)
