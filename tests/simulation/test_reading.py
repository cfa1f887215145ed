"""What reads the copies, against the oracles; and that wrong translations and changed records are seen."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.simulation.batches import Record
from tests.simulation.faults import Act, Fault
from tests.simulation.playing import READ_EVERY, Play, play
from tests.simulation.reading import unequal, verified
from tests.simulation.scenario import Kind, Round, Scenario
from tests.simulation.spoiling import CHANGES, spoil
from tests.simulation.translating import Sides
from tests.simulation.writing import Write

from ferry.translation.offset_map import LogBounds
from ferry.translation.translated import Inexact, Translation

pytestmark = pytest.mark.unit

WRITES = (Write(0, 4), Write(1, 3, commits=True), Write(0, 2, commits=False), Write(0, 3))


def _scenario(seed: int, *faults: Fault) -> Scenario:
    return Scenario(seed, (Round(0, Kind.BOUNDED, WRITES), Round(1, Kind.BOUNDED, WRITES)), faults)


def test_copies_are_read_at_the_end() -> None:
    """And again when one record was changed."""
    outcome = play(_scenario(READ_EVERY))
    assert outcome.problems == []
    assert any(isinstance(text, str) and text.startswith("somebody changes the ") for _, text in outcome.world.trace)


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_record_is_a_problem(what: str) -> None:
    """The oracle of a verify that must find nothing."""

    class Spoilt(Play):
        def _read(self) -> None:
            chance: Any = _Chooses(what)
            spoil(self.copy, chance)
            self._compare("verify", partial(verified, self.flow), unequal)

    (problem,) = Spoilt(_scenario(0)).play().problems
    assert "a verify compares" in problem
    assert "difference" in problem


def test_a_changed_record_is_one_that_a_verify_compares() -> None:
    """The first run stands still before it stores its position, and goes on after the second one, whose copies the receipts name. The first
    two records are on the target twice, and no receipt names the last copy of them."""
    fault = Fault(Act.FREEZE, "run-0", "OffsetCommit", 1, seconds=5.3)
    rounds = (Round(0, Kind.BOUNDED, (Write(0, 2),)), Round(1, Kind.FOLLOWS, (), (Write(0, 1),), 1.0, seconds=4.1, beside=3.3))
    outcome = play(Scenario(3 * READ_EVERY, rounds, (fault,), partitions=1, target_brokers=3, exactly_once=False))
    assert (outcome.problems, outcome.happened) == ([], [fault])


class _Chooses:
    """The last record, and this change of it."""

    def __init__(self, what: str) -> None:
        self._what = what

    def choice(self, among: list[Any]) -> Any:
        return self._what if self._what in among else among[-1]


def test_offsets_are_right_where_the_source_has_lost_records() -> None:
    fault = Fault(Act.EXPIRE, "run-1", "InitProducerId run", 1, cluster="source", place=3)
    outcome = play(_scenario(READ_EVERY, fault))
    assert (outcome.problems, outcome.happened) == ([], [fault])


def _record(offset: int, value: bytes) -> Record:
    return Record(offset, 0, None, value, [])


def test_the_two_logs_say_where_an_offset_is_on_the_other_side() -> None:
    """Source offsets 0, 1 and 4 are 0, 1 and 3 of the target."""
    names = (b"a", b"b", b"c")
    source, target = ([_record(*pair) for pair in zip(offsets, names, strict=True)] for offsets in ((0, 1, 4), (0, 1, 3)))
    sides = Sides(source, target, [], LogBounds(target_end=5))
    sides.start, sides.reached = 0, 6
    assert sides.forward(2, Translation(3)) == ""
    assert sides.forward(5, Translation(4)) == ""
    assert sides.forward(7, Translation(4, Inexact.AHEAD)) == ""
    assert sides.back(2, Translation(4)) == ""
    assert sides.back(4, Translation(6)) == ""
    assert "other records follow" in sides.forward(2, Translation(1))
    assert sides.forward(2, Translation(3, Inexact.BACKFILLED)) == "source offset 2 is 3 (backfilled), not 3 (None)"
    assert sides.forward(5, Translation(5)) == "source offset 5 is 5 (None), not 4 (None)"
