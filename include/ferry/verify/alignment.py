"""Where two rows of records agree again after a difference, and which records before that place have no counterpart (pure).

If a faulty copier left out a record, all records behind it, up to the next batch, are at other offsets. So offsets cannot say what is
wrong, but contents can. `meeting` finds how many records of each row to set aside, so that both rows are equal from there on.
`without_partner` finds which of these records have no counterpart in the same order on the other side.
"""

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

from ferry.clusters.net.partitions import grouped

# This many equal records in a row are no coincidence.
ENOUGH = 8
# If several places are equally good, the one where both rows agree longest counts, up to this length.
FARTHEST = 256
# Longer parts are compared place by place, because matching costs the product of both lengths.
LARGEST_MATCHED = 600


def meeting(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[int, int] | None:
    """How many records on the left and on the right to skip, at least, so that both rows are equal for a while or to both ends.

    None: there is no such place.
    """
    places = grouped((content, index) for index, content in enumerate(right))
    best: tuple[int, int, int] | None = None  # cost, minus length, records on the left
    for skipped, content in enumerate(left):
        if best is not None and skipped > best[0]:
            break
        for place in places.get(content, ()):
            cost = skipped + place
            if best is not None and cost > best[0]:
                break
            length = _alike(left, skipped, right, place)
            to_the_end = skipped + length == len(left) and place + length == len(right)
            if length >= ENOUGH or to_the_end:
                found = (cost, -length, skipped)
                best = found if best is None else min(best, found)
    return None if best is None else (best[2], best[0] - best[2])


def _alike(left: Sequence[Hashable], at: int, right: Sequence[Hashable], place: int) -> int:
    limit = min(len(left) - at, len(right) - place, FARTHEST)
    for length in range(limit):
        if left[at + length] != right[place + length]:
            return length
    return limit


def without_partner(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Indices of the records on both sides that have no counterpart in the same order; of two that changed places, both."""
    if len(left) == len(right):
        by_place = [index for index, (one, other) in enumerate(zip(left, right, strict=True)) if one != other]
        if len(by_place) <= 2 or len(left) > LARGEST_MATCHED:
            return by_place, list(by_place)
    if max(len(left), len(right)) > LARGEST_MATCHED:
        return list(range(len(left))), list(range(len(right)))
    kept_left, kept_right = set(range(len(left))), set(range(len(right)))
    for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        kept_left -= set(range(block.a, block.a + block.size))
        kept_right -= set(range(block.b, block.b + block.size))
    return sorted(kept_left), sorted(kept_right)
