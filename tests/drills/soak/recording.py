"""The history while it happens: sends and ends of transactions from several threads, polls of several readers."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError
from tests.drills.histories.model import History, Outcome, Place, Poll, RecordId, Send

# Errors of a delivery report that say that the record was never sent. After all others it may be in the log.
DEFINITE = frozenset({KafkaError._PURGE_QUEUE, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD})


@dataclass
class _Open:
    """A send without an answer yet."""

    place: Place
    transaction: str | None
    key: bytes | None


class Recorder:
    """Thread-safe; `history` afterwards."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[RecordId, _Open] = {}
        self._sends: list[Send] = []
        self._transactions: dict[str, Outcome] = {}
        self._ended: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        self._torn: set[str] = set()
        self.polls: list[Poll] = []
        self.source_polls: list[Poll] = []
        self.compacted: set[str] = set()

    def sending(self, record: RecordId, place: Place, transaction: str | None, key: bytes | None) -> None:
        """Before it is handed to the client."""
        with self._lock:
            self._open[record] = _Open(place, transaction, key if place[0] in self.compacted else None)

    def answered(self, record: RecordId, error: KafkaError | None, offset: int | None) -> None:
        """Its delivery report."""
        outcome = Outcome.OK if error is None else Outcome.FAILED if error.code() in DEFINITE else Outcome.UNKNOWN
        with self._lock:
            sent = self._open.pop(record)
            at = offset if error is None else None
            self._sends.append(Send(record, sent.place, at, outcome, sent.transaction, sent.key))

    def ended(self, transactional_id: str, name: str, outcome: Outcome) -> None:
        """A transaction; `name` is its own, `transactional_id` its producer's."""
        with self._lock:
            self._transactions[name] = outcome
            self._ended[transactional_id].append((time.monotonic(), name))

    def settled(self, transactional_ids: Collection[str], since: float) -> list[str]:
        """An operator aborted what the source had forgotten: how the transactions that ended since then (monotonic) ended is open."""
        with self._lock:
            found = [name for id in transactional_ids for moment, name in self._ended[id] if moment >= since]
            found = [name for name in found if self._transactions[name] is not Outcome.FAILED]
            self._transactions.update(dict.fromkeys(found, Outcome.UNKNOWN))
            self._torn.update(found)
            return found

    @property
    def sent(self) -> int:
        """Records with an answer so far."""
        return len(self._sends)

    def transactions(self) -> Mapping[Outcome, int]:
        """How many ended how."""
        with self._lock:
            ends = list(self._transactions.values())
        return {outcome: ends.count(outcome) for outcome in Outcome}

    def history(self, complete: Mapping[Place, int]) -> History:
        """Everything; what has no answer is unknown."""
        with self._lock:
            left = [Send(id, sent.place, None, Outcome.UNKNOWN, sent.transaction, sent.key) for id, sent in self._open.items()]
            compacted, torn = frozenset(self.compacted), frozenset(self._torn)
            ends, times = dict(self._transactions), self._source_times()
            return History([*self._sends, *left], ends, list(self.polls), complete, compacted, torn, times)

    def _source_times(self) -> dict[RecordId, int]:
        places = {(poll.place, seen.offset): seen.id for poll in self.source_polls for seen in poll.records if seen.id is not None}
        return Counter(places.values())
