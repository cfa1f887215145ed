"""The judge sees what is read twice, left out or out of order."""

from __future__ import annotations

import pytest
from tests.exactness.judging import Tally, Verdict, judge, total

pytestmark = pytest.mark.unit

ONE, TWO, THREE = (b"1",), (b"2",), (b"3",)


@pytest.mark.parametrize(
    ("wanted", "read", "verdict"),
    [
        ([], [], Verdict(0, 0, True)),
        ([TWO, THREE], [TWO, THREE], Verdict(0, 0, True)),
        ([TWO, THREE], [ONE, TWO, THREE], Verdict(1, 0, False)),
        ([TWO, THREE], [THREE], Verdict(0, 1, False)),
        ([TWO, THREE], [TWO, TWO, THREE], Verdict(1, 0, False)),
        ([TWO, THREE], [THREE, TWO], Verdict(0, 0, False)),
        ([TWO], [], Verdict(0, 1, False)),
        ([TWO, THREE], [ONE, THREE], Verdict(1, 1, False)),
    ],
)
def test_verdicts(wanted: list[tuple[object, ...]], read: list[tuple[object, ...]], verdict: Verdict) -> None:
    assert judge(wanted, read) == verdict


def test_tallies_add_up() -> None:
    first = Tally([Verdict(0, 0, True), Verdict(5, 0, False), Verdict(9, 1, False)], told=2)
    second = Tally([], [(Verdict(7, 0, False), Verdict(0, 3, False))])
    assert (first.positions, first.exact, first.read_again, first.skipped) == (3, 1, (14, 5, 9), 1)
    assert (second.positions, second.read_again, second.reset, second.told) == (1, (0, 0, 0), (7, 3), None)
    both = total([first, second])
    assert (both.positions, both.exact, both.skipped, both.told) == (4, 1, 1, 2)
    assert both.reset == (7, 3)
