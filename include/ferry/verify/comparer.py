"""Compares the two logs of one range as they are read, in bounded memory (pure).

The runs of the ledger say where every source record should be on the target. If both sides hold the same batch at that place, Ferry
compares its bytes without decompression; only fields that a forward patches may differ (base offset, leader epoch, attributes except the
codec, producer fields, checksum). Otherwise Ferry opens the batches and compares their records one by one: they may be in other batches. If
contents differ, Ferry sets records aside until both sides agree again, and explains them at the end (ferry.verify.unmatched). So a record
that was left out is one missing record, although all records behind it have other offsets.

The reader has checked the checksums, and has left out aborted data and control batches.
"""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter

from ferry.verify.alignment import meeting, without_partner
from ferry.verify.comparison import DifferenceKind, VerifyRange
from ferry.verify.contents import Content
from ferry.verify.log_side import Batch, LogSide
from ferry.verify.request import DigestKind
from ferry.verify.unmatched import KEPT, Mismatch, Unmatched
from ferry.wire.batch import DELETE_HORIZON, HEADER_SIZE, LOG_APPEND_TIME, BatchHeader
from ferry.wire.compression import LARGEST_BYTES
from ferry.wire.ranges import Ranges, outside, union
from ferry.wire.runs import DOWNSTREAM, UPSTREAM, counterpart, offsets_of, run_at

# How far to look ahead for a place where both sides agree again.
AHEAD_RECORDS = 2_048
AHEAD_BYTES = 8 << 20
_NOT_AS_STORED = LOG_APPEND_TIME | DELETE_HORIZON
_STORED = attrgetter("magic", "length", "codec", "last_offset_delta", "count", "base_timestamp", "max_timestamp")

# Offsets and contents of the records ahead.
_Ahead = tuple[list[int], list[Content]]


@dataclass
class Tally:
    records: int = 0  # compared pairs
    as_stored: int = 0  # bytes of batches that were compared without being opened
    only_source: int = 0  # records that compaction has removed from the target; `only_target`: from the source
    only_target: int = 0
    findings: list[Mismatch] = field(default_factory=list)
    beyond: Counter[DifferenceKind] = field(default_factory=Counter)
    source_digest: str = ""  # digests: see ferry.verify.digests; empty: none was taken
    target_digest: str = ""
    upstream: Ranges = ()  # the offsets that were compared, on the source and on the target
    downstream: Ranges = ()


class Comparer:
    """Add batches to `source` and `target`, call `advance` after each, and `finish` when both are done.

    `clusters`: names for messages. `limit`: bytes that the records of one batch may take. MalformedBatch: a batch cannot be opened.
    """

    def __init__(self, wanted: VerifyRange, clusters: tuple[str, str] = ("", ""), limit: int = LARGEST_BYTES) -> None:
        self._range = wanted
        self._runs = wanted.runs
        self._by_record = wanted.digest is DigestKind.RECORDS
        self.source = LogSide(union([*wanted.claimed, *offsets_of(self._runs, UPSTREAM)]), clusters[0], limit, wanted.digest)
        self.target = LogSide(outside(wanted.tolerated, *wanted.downstream), clusters[1], limit, wanted.digest if self._by_record else None)
        self.tally = Tally(upstream=self.source.wanted, downstream=self.target.wanted)
        self._unmatched = Unmatched(wanted.content)
        # How far the next record is from the place in the ledger. Behind a missing or duplicated record it is not 0 until the next batch.
        self._shift = 0
        self._displaced: list[Mismatch] = []

    def advance(self) -> None:
        while self._step():
            pass

    def finish(self) -> Tally:
        """The outcome; both sides must be done."""
        self.advance()
        self.tally.findings, self.tally.beyond = self._unmatched.finish()
        if not self._unmatched.any:  # unmatched records explain why others moved
            self.tally.findings = self._displaced
        self.tally.source_digest = self.source.digest.text()
        self.tally.target_digest = self.target.digest.text() if self._by_record else ""
        return self.tally

    def _step(self) -> bool:
        source, target = self.source, self.target
        if source.between_batches and target.between_batches:
            here, there = source.first_batch, target.first_batch
            if here is not None and there is not None and self._same_batch(here, there):
                self.tally.records += here.header.count
                self.tally.as_stored += len(here.view)
                self._shift = 0
                target.pass_batch(source.pass_batch())
                return True
            if (here is None and not source.done) or (there is None and not target.done):
                return False
        if source.has_record() and target.has_record():
            return self._compare_row()
        if (source.exhausted and target.has_record()) or (target.exhausted and source.has_record()):
            return self._rest()
        return False

    def _same_batch(self, here: Batch, there: Batch) -> bool:
        """Whether both sides hold the same stored batch, at the place that the ledger names."""
        one, other = here.header, there.header
        if not self._range.content or not _alike(one, other) or not self.source.wants_all(one) or not self.target.wants_all(other):
            return False
        run = run_at(self._runs, one.base_offset, UPSTREAM)
        if run is None or run[1] + one.base_offset - run[0] != other.base_offset or one.next_offset > run[0] + run[2]:
            return False
        # Python compares two memoryviews item by item, but a bytearray as a whole buffer.
        return bytearray(here.view[HEADER_SIZE:]) == there.view[HEADER_SIZE:]

    def _compare_row(self) -> bool:
        """Compare the records that are consecutive on both sides. False: more must be read."""
        source, target = self.source, self.target
        i, j, left, right = source.at, target.at, source.records, target.records
        upstream, downstream = left.offsets[i], right.offsets[j]
        run = run_at(self._runs, upstream, UPSTREAM)
        if run is not None and downstream - run[1] - upstream + run[0] == self._shift:
            count = min(_row(left.offsets, i), _row(right.offsets, j), run[0] + run[2] - upstream)
            same = self._equal_records(i, j, count)
            if same:
                self._matched(same)
                return True
        elif self._hole(upstream, downstream):
            return True
        return self._disturbed()

    def _equal_records(self, i: int, j: int, count: int) -> int:
        """How many of the next `count` records are equal."""
        if not self._range.content:
            return count
        left, right = self.source.records, self.target.records
        if (
            left.timestamps[i : i + count] == right.timestamps[j : j + count]
            and left.payloads[i : i + count] == right.payloads[j : j + count]
        ):
            return count
        return next(
            n for n in range(count) if left.timestamps[i + n] != right.timestamps[j + n] or left.payloads[i + n] != right.payloads[j + n]
        )

    def _hole(self, upstream: int, downstream: int) -> bool:
        """Skip a record that compaction has removed from the other side."""
        named = self._named(upstream)
        if 0 <= named < downstream and self.target.is_hole(named):
            self.tally.only_source += 1
            self.source.pass_records(1)
            return True
        origin = self._origin(downstream)
        if 0 <= origin < upstream and self.source.is_hole(origin):
            self.tally.only_target += 1
            self.target.pass_records(1)
            return True
        return False

    def _disturbed(self) -> bool:
        """Set records aside up to where both sides agree again. False: more must be read."""
        source, target = self.source, self.target
        enough = [side.has_ahead(AHEAD_RECORDS, AHEAD_BYTES) for side in (source, target)]
        if not all(enough):
            return False
        left, right = source.ahead(AHEAD_RECORDS), target.ahead(AHEAD_RECORDS)
        (offsets, contents), (places, others) = left, right
        met = meeting(contents, others) if self._range.content else None
        here, there = met if met is not None else self._by_place(offsets, places)
        if here or there:
            self._set_aside(left, here, right, there)
            return True
        named = self._named(offsets[0])
        if named < 0:  # in no run, but on the target
            self._matched(1)
            return True
        self._shift = places[0] - named
        if self._shift and len(self._displaced) < KEPT:
            self._displaced.append(Mismatch(DifferenceKind.DISPLACED, offsets[0], places[0], named))
        return True

    def _by_place(self, offsets: list[int], places: list[int]) -> tuple[int, int]:
        """By offsets alone: records before the other side's next record have no counterpart."""
        named = self._named(offsets[0])
        if named < 0:
            return 1, 0
        if named == places[0]:
            pairs, most = enumerate(zip(offsets, places, strict=False)), min(len(offsets), len(places))
            row = next((index for index, (offset, place) in pairs if self._named(offset) != place), most)
            return row, row
        if named < places[0]:
            return next((index for index, offset in enumerate(offsets) if self._named(offset) >= places[0]), len(offsets)), 0
        return 0, next((index for index, place in enumerate(places) if place >= named), len(places))

    def _set_aside(self, source: _Ahead, left: int, target: _Ahead, right: int) -> None:
        """Handle the first `left` and `right` records ahead; those without a counterpart wait for their explanation."""
        (offsets, contents), (places, others) = source, target
        here, there = list(range(left)), list(range(right))
        if self._range.content:
            here, there = without_partner(contents[:left], others[:right])
        self.tally.records += min(left - len(here), right - len(there))
        found = len(here), len(there)
        here = [index for index in here if not self.target.is_hole(self._named(offsets[index]))]
        there = [index for index in there if not self.source.is_hole(self._origin(places[index]))]
        self.tally.only_source += found[0] - len(here)
        self.tally.only_target += found[1] - len(there)
        if here or there:
            self._unmatched.add(
                [(offsets[index], self._named(offsets[index]), contents[index]) for index in here],
                [(places[index], -1, others[index]) for index in there],
            )
        self.source.pass_records(left)
        self.target.pass_records(right)

    def _rest(self) -> bool:
        """Handle the records of one side behind the end of the other, which has none ahead."""
        for side in (self.source, self.target):
            side.has_ahead(AHEAD_RECORDS, AHEAD_BYTES)
        left, right = self.source.ahead(AHEAD_RECORDS), self.target.ahead(AHEAD_RECORDS)
        self._set_aside(left, len(left[0]), right, len(right[0]))
        return True

    def _matched(self, count: int) -> None:
        self.tally.records += count
        self.source.pass_records(count)
        self.target.pass_records(count)

    def _named(self, upstream: int) -> int:
        """The downstream offset that the ledger names for an upstream one; -1: none."""
        return counterpart(self._runs, upstream, UPSTREAM)

    def _origin(self, downstream: int) -> int:
        return counterpart(self._runs, downstream, DOWNSTREAM)


def _row(offsets: list[int], at: int) -> int:
    """How many offsets from index `at` on are consecutive."""
    first, rest = offsets[at], len(offsets) - at
    if offsets[-1] - first == rest - 1:
        return rest
    # Offsets only rise: no offset behind a gap is consecutive with those before it.
    return bisect_right(range(rest), 0, key=lambda index: offsets[at + index] - first - index)


def _alike(one: BatchHeader, other: BatchHeader) -> bool:
    """Whether two headers differ only in fields that a forward patches."""
    if _STORED(one) != _STORED(other) or (one.attributes | other.attributes) & _NOT_AS_STORED:
        return False
    return one.magic == 2 and one.contiguous
