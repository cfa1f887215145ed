"""Two flows copy one topic in both directions, and keep its name: what either of them does not see in the other one comes back."""

from __future__ import annotations

from random import Random

import pytest
from tests.simulation.both_ways import in_both_directions
from tests.simulation.faults import Act, Fault
from tests.simulation.oracles import committed, violations
from tests.simulation.playing import AHEAD, BACK, TOPIC, Outcome, Play
from tests.simulation.scenario import Kind, Round, Scenario, usual
from tests.simulation.shrinking import kind_of
from tests.simulation.writing import Write

pytestmark = pytest.mark.unit


def _round(run: int, *, back: bool, beside: float | None = None) -> Round:
    return Round(run, Kind.BOUNDED, (Write(0, 2), Write(0, 3, back=True)), beside=beside, back=back)


def _played(*rounds: Round, fault: Fault | None = None, seed: int = 1) -> tuple[Play, Outcome]:
    one = Play(Scenario(seed, rounds, (fault,) if fault else (), partitions=1, goes_on=True, both=True))
    return one, one.play()


def _values(one: Play, mark: bytes) -> list[list[bytes]]:
    """What was written to a side, as both sides hold it."""
    sides = [committed(cluster.topic(TOPIC).partitions[0]) for cluster in (one.source, one.target)]
    return [[record.value or b"" for record in side if (record.value or b"").startswith(mark)] for side in sides]


@pytest.mark.parametrize("seed", range(4))
def test_both_flows_run_at_the_same_time(seed: int) -> None:
    one, outcome = _played(_round(0, back=False, beside=0.05), _round(1, back=True), seed=seed)
    assert outcome.problems == []
    for mark in (AHEAD, BACK):
        here, there = _values(one, mark)
        assert here == there
        assert len(here) == len(set(here)) >= 6


@pytest.mark.parametrize("request_kind", ["Produce lane", "TxnOffsetCommit", "EndTxn commit lane"])
def test_a_flow_is_killed_while_the_other_one_copies(request_kind: str) -> None:
    """Its receipts may be in a transaction that is open, or is aborted later: its records are not the other side's in any case."""
    fault = Fault(Act.KILL_AFTER, "run-0", request_kind, 1)
    _, outcome = _played(_round(0, back=True), _round(1, back=False), _round(2, back=True), fault=fault)
    assert (outcome.problems, outcome.happened) == ([], [fault])


def test_a_record_that_comes_back_is_seen() -> None:
    one, _ = _played(_round(0, back=False))
    back = one.ways[1].copy
    assert violations(one.copy) == violations(back) == []
    part = one.source.topic(TOPIC).partitions[0]
    part.append(part.led.leader, part.led, part.log.batches[0].data)
    assert {kind_of(problem) for problem in violations(one.copy)} >= {"orders-N has records that came back"}


def test_a_scenario_in_both_directions_has_runs_of_both() -> None:
    alone = [one for one in (usual(Random(seed), seed) for seed in range(20)) if len(one.rounds) == 1]
    changed = [in_both_directions(one, Random(one.seed)) for one in alone]
    assert len(changed) > 2
    assert all({entry.back for entry in one.rounds} == {True, False} for one in changed)
    assert all(one.both and one.exactly_once for one in changed)
