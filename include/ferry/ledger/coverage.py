"""Which upstream ranges the ledger covers (pure). Ranges are half-open `[start, end)`."""

from collections.abc import Iterable

from ferry.ledger.receipts import Receipt, ReceiptKind

Range = tuple[int, int]

SETTLING = frozenset({ReceiptKind.COPIED, ReceiptKind.BACKFILLED, ReceiptKind.LOSS, ReceiptKind.SKIPPED, ReceiptKind.FOREIGN})


def covered(receipts: Iterable[Receipt]) -> tuple[Range, ...]:
    """The union of what receipts settle, as disjoint ranges in order. Receipts may overlap or contain each other."""
    merged: list[Range] = []
    for start, end in sorted((receipt.upstream_start, receipt.upstream_end) for receipt in receipts if receipt.kind in SETTLING):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return tuple(merged)


def uncovered(wanted: Range, ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The parts of `wanted` that no range covers; `ranges` disjoint and in order."""
    start, end = wanted
    missing: list[Range] = []
    for low, high in ranges:
        if start >= end:
            break
        if high <= start:
            continue
        if low > start:
            missing.append((start, min(low, end)))
        start = max(start, high)
    if start < end:
        missing.append((start, end))
    return tuple(missing)
