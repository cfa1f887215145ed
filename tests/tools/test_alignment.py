"""Two sequences in step: every difference is named, and one difference stays one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.kafka.alignment import WINDOW, Step, align

pytestmark = pytest.mark.unit

MISSING, EXTRA, ORDER, ALTERED = Step.MISSING, Step.EXTRA, Step.ORDER, Step.ALTERED


def differing(wanted: str, found: str, **options: int) -> list[tuple[Step, int]]:
    return [(place.step, place.position) for place in align(iter(wanted), iter(found), **options) if place.step is not Step.SAME]


@pytest.mark.parametrize(
    ("wanted", "found", "places"),
    [
        ("", "", []),
        ("abcd", "abcd", []),
        ("abcd", "abc", [(MISSING, 3)]),
        ("abcd", "bcd", [(MISSING, 0)]),
        ("abcd", "acd", [(MISSING, 1)]),
        ("abcd", "abxcd", [(EXTRA, 2)]),
        ("abcd", "abcdd", [(EXTRA, 4)]),
        ("abcd", "abbcd", [(EXTRA, 2)]),
        ("abcd", "axcd", [(ALTERED, 1)]),
        ("abcd", "abcx", [(ALTERED, 3)]),
        ("abcd", "xbcd", [(ALTERED, 0)]),
        ("abcd", "acbd", [(ORDER, 1), (ORDER, 2)]),
        ("abcd", "dabc", [(ORDER, 0), (ORDER, 1), (ORDER, 2), (ORDER, 3)]),
        ("aabb", "abab", [(ORDER, 1), (ORDER, 2)]),
        ("abcdef", "acdxf", [(MISSING, 1), (ALTERED, 4)]),
        ("abc", "", [(MISSING, 0), (MISSING, 1), (MISSING, 2)]),
        ("", "ab", [(EXTRA, 0), (EXTRA, 1)]),
        ("ab", "xy", [(ALTERED, 0), (ALTERED, 1)]),
    ],
)
def test_each_difference_is_named(wanted: str, found: str, places: list[tuple[Step, int]]) -> None:
    assert differing(wanted, found) == places


def test_beyond_the_window_differences_stay_differences() -> None:
    """A gap that is longer than the window is not found as a gap, and never as equal."""
    assert all(step is not Step.SAME for step, _ in differing("abcdefgh", "gh", window=2))
    assert differing("abcdefgh", "gh", window=2)


def test_no_more_than_a_window_is_held() -> None:
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return taken

    places = align(iter(count, -1), iter(int, -1))
    assert next(places).step is Step.ALTERED
    assert taken == WINDOW


texts = st.text("abcd", max_size=30)


@given(texts, texts, st.integers(2, 8))
def test_nothing_is_dropped_or_invented(wanted: str, found: str, window: int) -> None:
    places = list(align(iter(wanted), iter(found), window=window))
    assert "".join(place.wanted for place in places if place.wanted is not None) == wanted
    assert "".join(place.found for place in places if place.found is not None) == found
    assert all((place.step is Step.SAME) == (place.wanted == place.found) for place in places)
    assert all(place.step is Step.SAME for place in places) == (wanted == found)
    for place in places:
        side, item = (found, place.found) if place.step is Step.EXTRA else (wanted, place.wanted)
        assert side[place.position] == item


@given(st.lists(st.integers(), unique=True, min_size=1, max_size=40), st.data())
def test_one_lost_item_is_one_difference(items: list[int], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(items) - 1))
    found = items[:index] + items[index + 1 :]
    assert [(place.step, place.wanted) for place in align(iter(items), iter(found)) if place.step is not Step.SAME] == [
        (MISSING, items[index])
    ]
