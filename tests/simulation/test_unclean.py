"""An unclean election at the source: records that were copied are gone, and others follow. Ferry names it, and copies the new records."""

from __future__ import annotations

import pytest
from tests.simulation.batches import Record
from tests.simulation.faults import Act, Fault
from tests.simulation.oracles import committed
from tests.simulation.playing import TOPIC, Play, play
from tests.simulation.rewritten import rewritten
from tests.simulation.scenario import Kind, Round, Scenario
from tests.simulation.scenes import SCENES
from tests.simulation.writing import Write

pytestmark = pytest.mark.unit


def _play(*, restarts: bool, kind: Kind = Kind.BOUNDED) -> tuple[Play, list[str]]:
    """Run 0 copies one record before and two during the lag; when it has ended, the two are gone. Run 1 finds three others."""
    fault = Fault(Act.UNCLEAN, "run-0", "", 1, seconds=4.0, cluster="source")
    later = (Write(0, 2),) if kind is Kind.FOLLOWS else ()
    rounds = (
        Round(0, kind, (Write(0, 1),), later=later, pause=1.0, seconds=2.0 if kind is Kind.FOLLOWS else 0.0),
        Round(1, Kind.FOLLOWS, (Write(0, 2),) if kind is Kind.BOUNDED else (), seconds=2.0),
        Round(2, Kind.FOLLOWS, (), later=(Write(0, 3),), pause=3.0, seconds=8.0),
        Round(3, Kind.BOUNDED, (Write(0, 1),)),
    )
    one = Play(Scenario(1, rounds, (fault,), partitions=1, source_brokers=3, restarts=restarts))
    outcome = one.play()
    assert outcome.problems == []
    return one, outcome.world.lines()


@pytest.mark.parametrize("kind", [Kind.BOUNDED, Kind.FOLLOWS])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_copied_stays_and_the_run_says_that_the_source_has_lost_it(kind: Kind, restarts: bool) -> None:
    one, lines = _play(restarts=restarts, kind=kind)
    assert any("has lost [1, 2]" in line for line in lines)
    # With restart, a plan sets the position back itself. Only a lane stops.
    assert restarts or any("reports" in line and "SourceTruncated" in line for line in lines)
    assert any(line.endswith("a person sets ferry.on.recreate = restart") for line in lines) is not restarts
    there = [record.value for record in committed(one.target.topic(one.copy.remote).partitions[0])]
    assert there[:3] == [b"0-0", b"0-1", b"0-2"]
    assert there[3:] == [record.value for record in committed(one.source.topic(TOPIC).partitions[0])][1:]


def test_records_of_an_earlier_epoch_are_not_copied_again() -> None:
    (scene,) = SCENES["receipt-of-epochs"]
    outcome = play(scene)
    assert (outcome.problems, outcome.happened) == ([], list(scene.faults))
    assert any("lost [3, 4]" in line for line in outcome.world.lines())


def _records(*places: tuple[int, bytes]) -> list[Record]:
    return [Record(offset, 0, b"k", value, []) for offset, value in places]


def test_what_must_hold_for_a_log_that_was_cut() -> None:
    today, gone = _records((0, b"a"), (1, b"c")), _records((1, b"b"))
    seen = [
        rewritten("x", today, gone, _records(*there), [])
        for there in (((0, b"a"), (1, b"b")), ((0, b"a"), (1, b"c"), (2, b"c")), ((0, b"a"), (1, b"c"), (2, b"z")))
    ]
    assert "not once on the target" in seen[0][0]
    assert "does not say so" in seen[0][1]
    assert "not once on the target" in seen[1][0]
    assert "never had" in seen[2][0]
