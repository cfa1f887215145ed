"""The index of runs against the same records written down one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.translation.run_index import Piece, RunIndex
from ferry.wire.runs import OffsetRun

pytestmark = pytest.mark.unit

# What stands on the target: records with consecutive upstream offsets, anywhere at the source, each with a gap in front of it.
STRETCHES = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(0, 3)), max_size=7)
# Parts that a further receipt names too: which stretch, from where, how many.
PARTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(1, 6)), max_size=4)


@st.composite
def named_runs(draw: st.DrawFn) -> tuple[list[OffsetRun], list[tuple[int, int]]]:
    """Runs in any order, of which some name records that others name too, and (downstream, upstream) of every record."""
    stretches: list[OffsetRun] = []
    place = 0
    for upstream, count, gap in draw(STRETCHES):
        place += gap
        stretches.append((upstream, place, count))
        place += count
    runs = list(stretches)
    for which, start, count in draw(PARTS):
        if which < len(stretches) and start < stretches[which][2]:
            upstream, place, length = stretches[which]
            # A stretch may be known only by its parts, which may overlap.
            if (upstream, place, length) in runs and draw(st.booleans()):
                runs.remove((upstream, place, length))
                runs += [(upstream, place, start + 1), (upstream + start, place + start, length - start)]
            runs.append((upstream + start, place + start, min(count, length - start)))
    return draw(st.permutations(runs)), [(place + step, upstream + step) for upstream, place, count in stretches for step in range(count)]


def pieces(runs: list[OffsetRun], slack: tuple[int, int]) -> list[Piece]:
    """The runs as receipts that increase on both sides. `slack`: a receipt may end behind its last record."""
    found: list[list[OffsetRun]] = []
    for run in runs:
        last = found[-1][-1] if found else None
        if last is not None and last[0] + last[2] <= run[0] and last[1] + last[2] <= run[1]:
            found[-1].append(run)
        else:
            found.append([run])
    ends = ((mine[-1][0] + mine[-1][2], mine[-1][1] + mine[-1][2]) for mine in found)
    return [Piece(mine, end + slack[0], place + slack[1]) for mine, (end, place) in zip(found, ends, strict=True)]


@given(named_runs(), st.tuples(st.integers(0, 3), st.integers(0, 3)), st.booleans())
def test_every_answer_is_that_of_the_records(
    named: tuple[list[OffsetRun], list[tuple[int, int]]], slack: tuple[int, int], in_order: bool
) -> None:
    runs, records = named
    index = RunIndex(pieces(sorted(runs, key=itemgetter(1)) if in_order else runs, slack))
    falls = [place + 1 for (place, upstream), (_, following) in pairwise(records) if following <= upstream]
    assert index.ordered_from == max(falls, default=0)
    for offset in range(22):
        assert index.first_downstream(offset) == min((place for place, upstream in records if upstream >= offset), default=None)
    for offset in range(max((place for place, _ in records), default=0) + 3):
        assert index.first_upstream(offset) == min((upstream for place, upstream in records if place >= offset), default=None)
        assert index.upstream_before(offset) == max((upstream + 1 for place, upstream in records if place < offset), default=0)


def test_only_the_receipt_that_a_question_is_about_is_decoded() -> None:
    decoded = []

    class Counted(tuple[OffsetRun, ...]):
        def __iter__(self) -> Iterator[OffsetRun]:
            decoded.append(self[0][0])
            return super().__iter__()

    receipts = [Counted((begin + 10 * step, begin + 11 * step + begin // 10, 10) for step in range(10)) for begin in range(0, 1_000, 100)]
    index = RunIndex(Piece(runs, runs[-1][0] + 10, runs[-1][1] + 10) for runs in receipts)
    assert (index.first_downstream(555), index.ordered_from) == (610, 0)
    assert decoded == [500]
    assert (index.first_downstream(556), index.first_upstream(610), index.first_downstream(1_000)) == (611, 555, None)
    assert decoded == [500], "once"
