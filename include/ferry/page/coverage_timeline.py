"""What the ledger covers of one topic, as a timeline of ranges, and what is missing in it (pure).

An offset is missing if it is below the position, the source still has it, no receipt settles it, and it did not come from the target. A
backfill would copy these offsets. coverage_reading.py then leaves out ranges that hold only control records and holes of compaction.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ferry.clusters.net.partitions import grouped
from ferry.copying.partition_plan import PartitionFacts
from ferry.ledger.receipts import Receipt, covered
from ferry.monitoring.ledger_ranges import CoveredRange, covered_ranges, joined
from ferry.wire.ranges import Range, outside, union

MISSING = "missing"
# A picture can show no more for a partition; and the answer for a topic of 1,000 partitions must stay small.
RANGES_A_PARTITION = 2_000
RANGES_A_TOPIC = 20_000


@dataclass(frozen=True)
class MissingRange:
    """Upstream `[start, end)` that a backfill would copy."""

    partition: int
    start: int
    end: int
    # A run over the interval of record time from `from_ms` (inclusive) to `until_ms` (exclusive) copies the range. None: there is no such
    # interval.
    from_ms: int | None = None
    until_ms: int | None = None
    obstacle: str = ""  # why Ferry would refuse a backfill, or why there is no interval; empty if nothing prevents it


def gaps(facts: PartitionFacts, receipts: Iterable[Receipt]) -> tuple[Range, ...]:
    """Offsets of one partition that nothing settles, between the log's start and the position."""
    settled = union([*covered(receipts), *facts.guard.excluded])
    return outside(settled, facts.log_start, facts.position)


def timeline(places: Iterable[PartitionFacts], receipts: Iterable[Receipt], missing: Iterable[MissingRange]) -> list[dict[str, Any]]:
    """One document for each partition, its ranges in order of offset. If there are too many, neighbours of a kind become one (`merged`)."""
    by_partition = grouped((entry.partition, entry) for entry in (*covered_ranges(receipts), *map(_drawn, missing)))
    known = {place.partition: place for place in places}
    partitions = sorted({*known, *by_partition})
    limit = max(10, min(RANGES_A_PARTITION, RANGES_A_TOPIC // max(1, len(partitions))))
    return [_partition(known.get(number), number, by_partition.get(number, []), limit) for number in partitions]


def _drawn(gap: MissingRange) -> CoveredRange:
    first = -1 if gap.from_ms is None else gap.from_ms
    last = -1 if gap.until_ms is None else gap.until_ms - 1
    return CoveredRange("", gap.partition, MISSING, gap.start, gap.end, -1, -1, first, last, gap.obstacle)


def _partition(place: PartitionFacts | None, number: int, ranges: Sequence[CoveredRange], limit: int) -> dict[str, Any]:
    merged = len(ranges) > limit
    shown = fewer_ranges(ranges, limit) if merged else sorted(ranges, key=lambda entry: (entry.start, entry.end))
    return {
        "partition": number,
        "log_start": place.log_start if place else None,
        "end": place.stable_end if place else None,
        "position": place.position if place else None,
        "merged": merged,
        "ranges": [{name: value for name, value in asdict(entry).items() if name not in {"topic", "partition"}} for entry in shown],
    }


def fewer_ranges(ranges: Iterable[CoveredRange], limit: int) -> list[CoveredRange]:
    """About `limit` ranges, at most one more for each kind: neighbours of the same kind are joined, and their numbers added."""
    kinds = grouped((entry.kind, entry) for entry in sorted(ranges, key=lambda entry: (entry.start, entry.end)))
    total = sum(map(len, kinds.values()))
    found: list[CoveredRange] = []
    for entries in kinds.values():
        share = max(1, limit * len(entries) // total)
        width = -(-len(entries) // share)
        found += [joined(entries[begin : begin + width]) for begin in range(0, len(entries), width)]
    return sorted(found, key=lambda entry: (entry.start, entry.end))
