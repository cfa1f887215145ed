"""A recorded history: what was sent to the source, how its transactions ended, and what readers of the target polled. Data only.

A record is known by `(producer, sequence)`, which no other record has. Offsets are those of the broker that answered: a send's of the
source, a poll's of the target. Partitions are named by the source's topic on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

Place = tuple[str, int]
RecordId = tuple[int, int]


class Outcome(StrEnum):
    """How a send or a transaction ended. UNKNOWN: no answer, so it happened or did not, once."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Send(NamedTuple):
    """One record sent. `offset`: as acknowledged, None when it was not. `transaction`: None outside of one."""

    id: RecordId
    place: Place
    offset: int | None
    outcome: Outcome
    transaction: str | None = None
    key: bytes | None = None


class Seen(NamedTuple):
    """One record polled. `id` None: it is not one of ours; `sent_to`: where its producer sent it; `intact`: whether its checksum holds."""

    offset: int
    id: RecordId | None
    sent_to: Place | None
    intact: bool = True


class Poll(NamedTuple):
    """What one poll of one reader returned of one partition, in order. A reader's polls stand in order in the history."""

    reader: str
    place: Place
    records: tuple[Seen, ...]


@dataclass(frozen=True)
class History:
    """Everything that was recorded.

    transactions: outcome of each by name; FAILED is aborted. torn_at_source: transactions that the source itself may have broken (settled
    by an operator), whose parts are judged one by one. source_times: how often the source's own committed log holds each record, as a
    witness there saw; empty when there was none. A producer that got no answer writes anew under a new producer id, and a broker that is
    killed around EndTxn may forget partitions of a transaction: a copier must copy just what the source holds. complete: for each
    partition that must be copied, the source offset (exclusive) up to which everything must have been seen in the end. compacted: topics
    whose older records of a key may be gone.
    """

    sends: Sequence[Send]
    transactions: Mapping[str, Outcome]
    polls: Sequence[Poll]
    complete: Mapping[Place, int] = field(default_factory=dict)
    compacted: frozenset[str] = frozenset()
    torn_at_source: frozenset[str] = frozenset()
    source_times: Mapping[RecordId, int] = field(default_factory=dict)

    def outcome(self, send: Send) -> Outcome:
        """Of the send together with its transaction: a record of an aborted one was never written."""
        ended = Outcome.OK if send.transaction is None else self.transactions.get(send.transaction, Outcome.UNKNOWN)
        if Outcome.FAILED in {send.outcome, ended}:
            return Outcome.FAILED
        return Outcome.UNKNOWN if Outcome.UNKNOWN in {send.outcome, ended} else Outcome.OK
