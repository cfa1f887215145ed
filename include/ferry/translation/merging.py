"""Identity policy in both directions: one topic on both clusters, with records that each side wrote first (pure).

A reader of the source's topic has read two kinds of records: the source's own, which the flow's ledger places on the target, and those that
came from the target, whose places there the opposite flow's ledger tells. It goes on at the earlier of the two. Records that the target
wrote and that are not at the source yet lie, at the earliest, where the opposite flow stands, and where the flow's own copies do not fill
the log.
"""

from __future__ import annotations

from ferry.translation.model import Inexact, Translation
from ferry.translation.offset_map import OffsetMap

# Said of the flow's own copies, they say more than that two images were compared.
_TELLING = frozenset({Inexact.AHEAD, Inexact.NOT_COPIED, Inexact.TARGET_EXPIRED})


def merged(forward: OffsetMap, opposite: OffsetMap, offset: int) -> Translation:
    """Where a reader at `offset` of the source's topic goes on at the target. `opposite`: of the flow that copies the other way."""
    own = forward.translate(offset)
    placed, returned = forward.image(offset), opposite.origin(offset)
    begin = forward.bounds.target_start
    not_returned = forward.explained_to(max(begin, opposite.position or 0))
    # With no copy behind `offset`, the next one lands behind the copies, and behind what was stable before the ledger was read.
    earliest = [not_returned, max(forward.bounds.target_end, forward.copied_end) if placed is None else placed]
    if returned is not None:
        earliest.append(returned)
    image = max(min(earliest), begin)
    exact = False
    if own.exact and returned is None and not_returned >= forward.copied_end:
        # Only the source's own records lie behind the image.
        exact = opposite.copied_before(image)
    elif placed is None and opposite.invert(offset).exact and image == returned:
        # Only the target's own records do.
        exact = image >= forward.copied_end
    if exact:
        return Translation(offset, image)
    return Translation(offset, image, own.reason if own.reason in _TELLING else Inexact.MERGED, own.ahead)
