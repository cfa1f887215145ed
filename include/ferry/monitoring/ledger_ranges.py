"""The ledger for people: neighbouring receipts of one kind become one range (pure)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

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


def covered_ranges(receipts: Iterable[Receipt]) -> list[CoveredRange]:
    """Ranges in order of topic, partition and offset. A receipt inside a range of its own kind adds nothing."""
    merged: list[CoveredRange] = []
    for receipt in sorted(
        receipts, key=lambda entry: (entry.topic, entry.partition, entry.kind, entry.upstream_start, -entry.upstream_end)
    ):
        last = merged[-1] if merged else None
        same = last is not None and (last.topic, last.partition, last.kind, last.reason) == (
            receipt.topic,
            receipt.partition,
            receipt.kind.value,
            receipt.reason,
        )
        if last is None or not same or receipt.upstream_start > last.end or receipt.upstream_start == receipt.upstream_end:
            merged.append(_range(receipt))
        elif receipt.upstream_end > last.end:
            known = [moment for moment in (last.min_timestamp, receipt.min_timestamp) if moment >= 0]
            merged[-1] = replace(
                last,
                end=receipt.upstream_end,
                records=last.records + receipt.counters.records,
                bytes=last.bytes + receipt.counters.bytes,
                min_timestamp=min(known, default=-1),
                max_timestamp=max(last.max_timestamp, receipt.max_timestamp),
            )
    return sorted(merged, key=lambda entry: (entry.topic, entry.partition, entry.start, entry.end))


def _range(receipt: Receipt) -> CoveredRange:
    return CoveredRange(
        receipt.topic,
        receipt.partition,
        receipt.kind.value,
        receipt.upstream_start,
        receipt.upstream_end,
        receipt.counters.records,
        receipt.counters.bytes,
        receipt.min_timestamp,
        receipt.max_timestamp,
        receipt.reason,
    )
