"""Runs that are decoded when somebody asks are the same runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferry.wire.coded_runs import CodedRuns, coded_runs, joined_coded, tight
from ferry.wire.runs import OffsetRun, decode_runs, encode_runs, end_of

pytestmark = pytest.mark.unit

NUMBERS = st.one_of(st.integers(0, 3), st.integers(0, 1 << 20), st.integers(0, 1 << 50))


@st.composite
def runs(draw: st.DrawFn) -> tuple[OffsetRun, ...]:
    upstream = downstream = 0
    drawn = []
    for _ in range(draw(st.integers(1, 8))):
        upstream, downstream, count = upstream + draw(NUMBERS), downstream + draw(NUMBERS), 1 + draw(NUMBERS)
        drawn.append((upstream, downstream, count))
        upstream, downstream = upstream + count, downstream + count
    return decode_runs(encode_runs(drawn))


@given(runs())
def test_they_are_the_runs(given_runs: tuple[OffsetRun, ...]) -> None:
    found = coded_runs(encode_runs(given_runs))
    assert found == given_runs
    assert (len(found), found[0], found[-1], bool(found)) == (len(given_runs), given_runs[0], given_runs[-1], True)
    assert (found[:1], found[1:]) == (given_runs[:1], given_runs[1:])
    assert (list(found), hash(found), repr(found)) == (list(given_runs), hash(given_runs), repr(given_runs))
    assert tight(found) == tight(given_runs)
    assert found == coded_runs(encode_runs(given_runs))


@given(st.lists(st.one_of(runs(), runs().map(lambda drawn: coded_runs(encode_runs(drawn)))), max_size=4))
def test_they_are_joined_as_if_they_were_decoded(parts: list[Sequence[OffsetRun]]) -> None:
    """Most drawn parts do not follow each other; `shifted` puts each behind the one before it, with and without a gap."""

    def outcome(join: Callable[[], bytes]) -> bytes | str:
        try:
            return join()
        except ValueError as problem:
            return str(problem)

    for given_parts in (parts, shifted(parts, 0), shifted(parts, 1)):
        assert outcome(lambda: joined_coded(given_parts)) == outcome(lambda: encode_runs(chain.from_iterable(given_parts)))  # noqa: B023 - called at once


def shifted(parts: Sequence[Sequence[OffsetRun]], gap: int) -> list[Sequence[OffsetRun]]:
    found: list[Sequence[OffsetRun]] = []
    upstream = downstream = 0
    for part in parts:
        moved = tuple((upstream + one[0], downstream + one[1], one[2]) for one in part)
        found.append(coded_runs(encode_runs(moved)) if isinstance(part, CodedRuns) else moved)
        upstream, downstream = (end_of(moved, side) + gap for side in (0, 1))
    return found


@given(st.binary(max_size=24).map(lambda data: b"\1" + data))
@example(b"\1\0\0\1\0\0\1")
def test_what_is_not_decoded_at_once_can_be_decoded(data: bytes) -> None:
    """Errors come when a receipt is read, not later; and the number of runs is that of the decoded ones."""
    try:
        expected = decode_runs(data)
    except ValueError:
        with pytest.raises(ValueError, match=r"run|integer"):
            coded_runs(data)
        return
    found = coded_runs(data)
    assert (found, len(found)) == (expected, len(expected))


def test_usual_runs_stay_coded() -> None:
    assert isinstance(coded_runs(encode_runs((index * 20, index * 21, 20) for index in range(1_000))), CodedRuns)
