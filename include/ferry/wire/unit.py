"""What becomes of a partition's fetched bytes: units, whose upstream ranges tile what was read.

Whatever treats batches collects `Draft`s in a `Drafts`, which knows how far each unit reaches once all are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ferry.wire.forward import forward

UnitKind = Literal["forwarded", "reframed", "handled"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One batch to produce, whatever its producer will be.

    `runs`: the upstream offsets of its records in order, (first offset, number of records); together `count` records. Of a handled unit
    they count source records: `places` holds for each run the index within the batch of its first record, later outputs of a source record
    are in no run, and `dropped` source records of the unit's range have no output at all; `count` is always what is in the batch.
    [`upstream_start`, `upstream_end`): the upstream range that is settled once this unit is accepted. `size`: bytes on the wire.
    Timestamps in ms; a forwarded batch's `min_timestamp` is its first record's, which is good enough: it only feeds reports.
    `last_leader_epoch`: a fetch from `upstream_end` names it, so that the leader detects truncation (KIP-320). It is the source's leader
    epoch of the entry that ends there, also of one that was passed over. Behind a hole it is the epoch of the entry behind the hole: the
    entry before it may be older than an epoch that began inside the hole. -1: not known (magic 0 and 1).
    """

    kind: UnitKind
    payload: memoryview
    count: int
    runs: tuple[tuple[int, int], ...]
    upstream_start: int
    upstream_end: int
    min_timestamp: int
    max_timestamp: int
    last_leader_epoch: int
    places: tuple[int, ...] = ()
    dropped: int = 0

    @property
    def size(self) -> int:
        return len(self.payload)

    @property
    def own(self) -> int:
        """Bytes in memory beside what was fetched."""
        return 0 if self.kind == "forwarded" else len(self.payload)

    @property
    def added(self) -> int:
        """Records that the handler put in beyond one for each source record."""
        return self.count - sum(count for _, count in self.runs) if self.places else 0

    def encode(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> tuple[bytes, memoryview]:
        """The batch for this producer, in two buffers; call it again for another one."""
        return forward(self.payload, producer_id, epoch, base_sequence, transactional)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What one partition's fetched bytes come to.

    `next_position`: the upstream offset to fetch next, at most `end`; it moves even where there are no units.
    `consumed`: bytes of whole entries that were read. 0 with bytes at hand means that even the first entry was incomplete.
    `last_leader_epoch`: as of a unit, at `next_position`.
    `dropped`: records that a handler dropped and that no unit counts, because there is none.
    """

    units: list[Unit]
    next_position: int
    consumed: int
    last_leader_epoch: int = -1
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A unit before it is known how far it reaches."""

    kind: UnitKind
    payload: memoryview
    count: int
    runs: tuple[tuple[int, int], ...]
    upstream_start: int
    min_timestamp: int
    max_timestamp: int
    places: tuple[int, ...] = ()
    dropped: int = 0


class Drafts:
    """Drafts in upstream order, from `position` on, and the leader epochs of everything that was read."""

    def __init__(self, position: int) -> None:
        self.position = position
        self._drafts: list[Draft] = []
        # (offset, epoch): behind this offset positions have this epoch, as far as was read. Epochs change rarely, so the list stays short.
        self._epochs: list[tuple[int, int]] = []

    def pass_epoch(self, reached: int, epoch: int) -> None:
        """Notes the leader epoch of an entry, of whatever kind, and of the hole before it: `reached` is where the one before ended."""
        if not self._epochs or self._epochs[-1][1] != epoch:
            self._epochs.append((reached, epoch))

    def epoch_at(self, position: int) -> int:
        """The leader epoch to fetch from `position` with, -1 if it is not known: see Unit."""
        return next((epoch for offset, epoch in reversed(self._epochs) if offset < position), -1)

    def units(self, next_position: int) -> list[Unit]:
        """The units, tiling [position, next_position)."""
        drafts = self._drafts
        starts = [self.position, *(draft.upstream_start for draft in drafts[1:]), next_position]
        return [
            Unit(
                kind=draft.kind,
                payload=draft.payload,
                count=draft.count,
                runs=draft.runs,
                upstream_start=start,
                upstream_end=stop,
                min_timestamp=draft.min_timestamp,
                max_timestamp=draft.max_timestamp,
                last_leader_epoch=self.epoch_at(stop),
                places=draft.places,
                dropped=draft.dropped,
            )
            for draft, start, stop in zip(drafts, starts, starts[1:], strict=False)
        ]
