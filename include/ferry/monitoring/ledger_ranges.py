"""The ledger for people: neighbouring receipts of one kind become one range (pure)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from ferry.errors import count_of
from ferry.ledger.receipts import Receipt


@dataclass(frozen=True)
class CoveredRange:
    """Upstream `[start, end)` of one partition, with the kind and the reason of its receipts."""

    topic: str
    partition: int
    kind: str
    start: int
    end: int
    records: int
    bytes: int
    min_timestamp: int
    max_timestamp: int
    reason: str


_WHAT = attrgetter("topic", "partition", "kind", "reason")


def covered_ranges(receipts: Iterable[Receipt]) -> list[CoveredRange]:
    """Ranges in order of topic, partition and offset. A receipt inside a range of its own kind adds nothing."""
    merged: list[CoveredRange] = []
    for found in sorted(map(_range, receipts), key=lambda entry: (entry.topic, entry.partition, entry.kind, entry.start, -entry.end)):
        last = merged[-1] if merged else None
        if last is None or _WHAT(last) != _WHAT(found) or found.start > last.end or found.start == found.end:
            merged.append(found)
        elif found.end > last.end:
            merged[-1] = joined((last, found))
    return sorted(merged, key=lambda entry: (entry.topic, entry.partition, entry.start, entry.end))


def joined(entries: Sequence[CoveredRange]) -> CoveredRange:
    """Ranges of one kind, in order, as one range with the sums of their numbers."""
    first, moments = entries[0], [entry.min_timestamp for entry in entries if entry.min_timestamp >= 0]
    reasons = {entry.reason for entry in entries}
    counted = first.records >= 0  # not so if the kind is missing
    return replace(
        first,
        end=max(entry.end for entry in entries),
        records=sum(entry.records for entry in entries) if counted else -1,
        bytes=sum(entry.bytes for entry in entries) if counted else -1,
        min_timestamp=min(moments, default=-1),
        max_timestamp=max(entry.max_timestamp for entry in entries),
        reason=first.reason if len(reasons) == 1 else f"{count_of(len(entries), 'range')}, of {len(reasons)} reasons",
    )


def _range(receipt: Receipt) -> CoveredRange:
    place, counters = (*receipt.key, receipt.kind.value, receipt.upstream_start, receipt.upstream_end), receipt.counters
    return CoveredRange(*place, counters.records, counters.bytes, receipt.min_timestamp, receipt.max_timestamp, receipt.reason)
