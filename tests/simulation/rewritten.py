"""What must hold for a partition whose log has lost records that may have been copied.

Its records of today are on the target once, in order. What was copied before stays there, and the ledger says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tests.simulation.batches import Record
from tests.simulation.records import What, what_of

from ferry.ledger.receipts import Receipt, ReceiptKind


def rewritten(name: str, today: Sequence[Record], gone: Sequence[Record], there: Sequence[Record], known: Sequence[Receipt]) -> list[str]:
    """What does not hold. `there`: on the target. `known`: the receipts of the partition."""
    here, lost, found = what_of(today), what_of(gone), list[str]()
    copies = what_of(there)
    kept = [what for what in copies if what in here]
    if kept != here:
        told = [str(what.value) for what in here if kept.count(what) != 1]
        found.append(f"{name} has records that are not once on the target, or in another order: {', '.join(told)}")
    stale = [what for what in copies if what not in here]
    if stale != [what for what in lost if what in stale]:
        found.append(f"{name}: the target has records that the source never had, or twice: {[what.value for what in stale]}")
    if stale and not any(one.kind is ReceiptKind.SEED and "truncated" in one.reason for one in known):
        found.append(f"{name}: the source has lost records that were copied, and the ledger does not say so")
    own = [one for one in known if one.kind is not ReceiptKind.SEED]
    return found + _explained(name, {*_placed(today), *_placed(gone)}, _placed(there), own) + _joined(name, own)


def _placed(records: Sequence[Record]) -> list[tuple[int, What]]:
    return [(record.offset, what) for record, what in zip(records, what_of(records), strict=True)]


def _explained(name: str, ever: set[tuple[int, What]], there: list[tuple[int, What]], own: Iterable[Receipt]) -> list[str]:
    """Whether receipts name each record of the target once, and where it came from. `ever`: what the source has, or had."""
    copies, named, found = dict(there), list[int](), list[str]()
    for receipt in own:
        for upstream, downstream, count in receipt.runs:
            named += range(downstream, downstream + count)
            wrong = [step for step in range(count) if (upstream + step, copies.get(downstream + step)) not in ever]
            found += [f"receipts of {name}: source offset {upstream + step} is not {downstream + step} on the target" for step in wrong]
    return found if sorted(named) == sorted(copies) else [*found, f"receipts of {name} explain {sorted(named)}, not {sorted(copies)}"]


def _joined(name: str, own: Sequence[Receipt]) -> list[str]:
    """Whether the receipts of each series go on where the one before ended."""
    found = []
    for series in sorted({one.series for one in own}):
        mine = [one for one in own if one.series == series]
        found += [
            f"receipts of {name}: after {one.upstream_end} comes {two.upstream_start}"
            for one, two in pairwise(mine)
            if one.upstream_end != two.upstream_start
        ]
    return found
