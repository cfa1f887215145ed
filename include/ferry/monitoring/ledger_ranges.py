"""The ledger for people: neighbouring receipts of one kind become one range (pure)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

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
            known = [moment for moment in (last.min_timestamp, found.min_timestamp) if moment >= 0]
            merged[-1] = replace(
                last,
                end=found.end,
                records=last.records + found.records,
                bytes=last.bytes + found.bytes,
                min_timestamp=min(known, default=-1),
                max_timestamp=max(last.max_timestamp, found.max_timestamp),
            )
    return sorted(merged, key=lambda entry: (entry.topic, entry.partition, entry.start, entry.end))


def _range(receipt: Receipt) -> CoveredRange:
    place, counters = (*receipt.key, receipt.kind.value, receipt.upstream_start, receipt.upstream_end), receipt.counters
    return CoveredRange(*place, counters.records, counters.bytes, receipt.min_timestamp, receipt.max_timestamp, receipt.reason)
