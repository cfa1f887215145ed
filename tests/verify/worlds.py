"""Made-up histories of one partition: a source log, a copy of it in transactions, and the receipts that a right copier would write.

A wrong copier is made by changing one batch that is the last of its transaction, while the receipts stay as they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
from hypothesis import strategies as st

from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind, decode_receipt, encode_receipt
from ferry.verify import slices
from ferry.verify import verify_plan as plan
from ferry.verify.comparer import Comparer, Tally
from ferry.verify.comparison import PartitionEvidence, VerifyRange
from ferry.verify.log_side import Batch, LogSide
from ferry.wire import compression, varint
from ferry.wire.batch import HEADER, HEADER_SIZE, LENGTH_OVERHEAD, read_header
from ferry.wire.ranges import Ranges, outside
from ferry.wire.runs import normalise

TRANSACTIONAL = 0x10
SOURCE_ID, REMOTE_ID = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"


@dataclass(frozen=True)
class Record:
    """One record: what must be the same on both sides."""

    number: int
    timestamp: int
    payload: bytes


def record(number: int, same: int) -> Record:
    """A record; of those with `same` > 1, so many neighbours have one content."""
    shown = number // same
    key, value = f"k{shown % 7}".encode(), f"v{shown}".encode()
    payload = (
        varint.encode(len(key)) + key + varint.encode(len(value)) + value + varint.encode(1) + varint.encode(1) + b"h" + varint.encode(-1)
    )
    return Record(number, 1_000 + shown, payload)


@dataclass(frozen=True)
class Stored:
    """A batch in a log: records at their offsets; `base` and `end` are what its header says."""

    base: int
    end: int
    records: tuple[tuple[int, Record], ...]
    codec: int = 0
    attributes: int = 0

    @property
    def batch(self) -> Batch:
        first = self.records[0][1].timestamp
        body = bytearray()
        for offset, entry in self.records:
            data = b"\0" + varint.encode(entry.timestamp - first) + varint.encode(offset - self.base) + entry.payload
            body += varint.encode(len(data)) + data
        packed = bytes(compression.compress(self.codec, bytes(body)))
        latest = max(entry.timestamp for _, entry in self.records)
        length = HEADER_SIZE - LENGTH_OVERHEAD + len(packed)
        attributes = self.codec | self.attributes
        fields = (self.base, length, 0, 2, 0, attributes, self.end - self.base - 1, first, latest, 5, 0, 0, len(self.records))
        view = memoryview(HEADER.pack(*fields) + packed)
        return Batch(read_header(view), view)


@dataclass
class World:
    """Both logs and the ledger; offsets of the target's last batch of each transaction are where faults can be planted."""

    source: list[Stored] = field(default_factory=list)
    target: list[Stored] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    source_end: int = 0
    target_end: int = 0
    faulty: list[int] = field(default_factory=list)
    source_start: int = 0
    target_start: int = 0
    # Where compaction has removed whole batches, of the source and of the target.
    cleaned: tuple[Ranges, Ranges] = ((), ())

    def evidence(self, **changes: object) -> PartitionEvidence:
        """With the receipts as a reader of the ledger has them: their runs are coded."""
        position = max((entry.upstream_end for entry in self.receipts if entry.kind is ReceiptKind.COPIED), default=-1)
        found = PartitionEvidence(
            "t",
            0,
            UUID(SOURCE_ID),
            "r",
            UUID(REMOTE_ID),
            self.source_start,
            self.source_end,
            self.target_start,
            self.target_end,
            tuple(decode_receipt(*encode_receipt(entry)) for entry in self.receipts),
            position,
        )
        return replace(found, **changes)  # type: ignore[arg-type]


def receipt(kind: ReceiptKind, start: int, end: int, **fields: object) -> Receipt:
    return Receipt(kind, "t", 0, SOURCE_ID, "r", REMOTE_ID, start, end, **fields)  # type: ignore[arg-type]


# Upstream start and end, and the batch between.
_Part = tuple[int, int, Stored]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A source log with holes, copied in order or with its first part backfilled."""
    world = World()
    same = draw(st.sampled_from([1, 1, 1, 3]))
    offset = draw(st.integers(0, 5))
    world.source_start = offset
    number = 0
    for _ in range(draw(st.integers(1, 8))):
        count = draw(st.integers(1, 12))
        kept = [place for place in range(count) if count == 1 or draw(st.integers(0, 9)) > 0] or [0]
        entries = []
        for place in kept:
            entries.append((offset + place, record(number, same)))
            number += 1
        world.source.append(Stored(offset, offset + count, tuple(entries), draw(st.sampled_from([0, 3]))))
        offset += count + draw(st.sampled_from([0, 0, 1, 4]))  # markers, aborted data
    world.source_end = offset
    starts = [world.source_start, *(stored.end for stored in world.source[:-1])]
    ends = [*starts[1:], world.source_end]
    parts = list(zip(starts, ends, world.source, strict=True))
    late = draw(st.integers(0, len(parts) - 1))
    copied = _transactions(draw, ReceiptKind.COPIED, parts[late:])
    backfilled = _transactions(draw, ReceiptKind.BACKFILLED, parts[:late])
    # While history is copied, the flow goes on; of two intervals the older one may be copied last.
    turns = [True] * len(copied)
    for _ in backfilled:
        turns.insert(draw(st.integers(0, len(turns))), False)
    if draw(st.booleans()):
        backfilled.reverse()
    world.target_end = draw(st.sampled_from([0, 0, 7]))
    world.target_start = world.target_end
    for turn in turns:
        kind, chosen = (copied if turn else backfilled).pop(0)
        _copy(world, kind, chosen, merged=draw(st.booleans()))
    return world


def _transactions(draw: st.DrawFn, kind: ReceiptKind, parts: list[_Part]) -> list[tuple[ReceiptKind, list[_Part]]]:
    found, left = [], list(parts)
    while left:
        size = draw(st.integers(1, len(left)))
        found.append((kind, left[:size]))
        left = left[size:]
    return found


def _copy(world: World, kind: ReceiptKind, parts: list[_Part], *, merged: bool) -> None:
    """One transaction: its batches, its marker, its receipt."""
    rows = [stored.records for _, _, stored in parts]
    codecs = [stored.codec for _, _, stored in parts]
    if merged:
        rows, codecs = [tuple(entry for row in rows for entry in row)], [0]
    runs = []
    for row, codec in zip(rows, codecs, strict=True):
        base = world.target_end
        placed = tuple((base + index, entry) for index, (_, entry) in enumerate(row))
        runs += [(upstream, base + index, 1) for index, (upstream, _) in enumerate(row)]
        world.target.append(Stored(base, base + len(row), placed, codec, TRANSACTIONAL))
        world.target_end += len(row)
    world.faulty.append(len(world.target) - 1)
    end = world.target_end
    world.target_end += 1  # the commit marker
    start, stop = parts[0][0], parts[-1][1]
    count = sum(len(row) for row in rows)
    world.receipts.append(receipt(kind, start, stop, runs=normalise(runs), downstream_end=end, counters=Counters(count, 100 * count, 1)))


def rewrite(world: World, index: int, change: Callable[[list[Record]], list[Record]]) -> None:
    """The batch `index` of the target becomes another one; what lies behind it moves, receipts of later transactions with it."""
    old = world.target[index]
    rows = change([entry for _, entry in old.records])
    grown = len(rows) - len(old.records)
    world.target[index] = replace(
        old, end=old.base + len(rows), records=tuple((old.base + place, entry) for place, entry in enumerate(rows))
    )
    if grown:
        shift(world, old.end, grown)


def shift(world: World, place: int, by: int) -> None:
    """Everything from downstream offset `place` on, and what the receipts say of it, moves."""
    world.target = [
        replace(stored, base=stored.base + by, end=stored.end + by, records=tuple((offset + by, entry) for offset, entry in stored.records))
        if stored.base >= place
        else stored
        for stored in world.target
    ]
    world.receipts = [
        replace(
            entry,
            runs=tuple(
                (upstream, downstream + by if downstream >= place else downstream, count) for upstream, downstream, count in entry.runs
            ),
            downstream_end=entry.downstream_end + by if entry.downstream_end > place else entry.downstream_end,
        )
        for entry in world.receipts
    ]
    world.target_end += by


def insert_stranger(world: World, place: int, entry: Record) -> None:
    """Another producer's record at `place`, between two transactions."""
    shift(world, place, 1)
    world.target.append(Stored(place, place + 1, ((place, entry),)))
    world.target.sort(key=lambda stored: stored.base)


def compare(world: World, seed: int = 1, piece_bytes: int = 1 << 30, **changes: object) -> list[tuple[VerifyRange, Tally]]:
    """Every range that is planned, compared in pieces whose sizes `seed` decides."""
    return [(wanted, tally_of(wanted, world, seed)) for wanted in planned(world, piece_bytes, **changes)]


def planned(world: World, piece_bytes: int = 1 << 30, **changes: object) -> tuple[VerifyRange, ...]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (plan, slices):
            patch.setattr(module, "PIECE_BYTES", piece_bytes)
        return plan.plan_partition(world.evidence(**changes)).ranges


def tally_of(wanted: VerifyRange, world: World, seed: int = 1) -> Tally:
    comparer = Comparer(wanted)
    feeds = [_pieces(world.source, comparer.source, world.cleaned[0]), _pieces(world.target, comparer.target, world.cleaned[1])]
    chance = random.Random(seed)
    while not (comparer.source.done and comparer.target.done):
        next(chance.choice(feeds))
        comparer.advance()
    return comparer.finish()


def _pieces(log: list[Stored], side: LogSide, cleaned: Ranges) -> Iterator[None]:
    """Feeds what a reader would: whole batches that overlap what is wanted, and markers or aborted data between batches."""
    span = (side.wanted[0][0], side.wanted[-1][1]) if side.wanted else (0, 0)
    end = span[0]
    for stored in log:
        if stored.base < span[1] and stored.end > span[0]:
            for gap in outside(cleaned, end, stored.base):
                side.add(left_out(*gap))
                yield
            end = stored.end
            side.add(stored.batch)
            yield
    for gap in outside(cleaned, end, span[1]):
        side.add(left_out(*gap))
    side.done = True
    while True:
        yield


def left_out(start: int, end: int) -> Batch:
    return Batch(Stored(start, end, ((start, record(0, 1)),)).batch.header, memoryview(b""))


def wanted_offsets(ranges: Ranges) -> set[int]:
    return {offset for start, end in ranges for offset in range(start, end)}
