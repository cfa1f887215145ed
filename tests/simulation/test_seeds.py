"""A short series of seeds; `make simulate` plays as many as wanted. And: a seed always gives the same, and a mutant is found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.simulation.faults import Act, Fault
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutating import ROOT, Mutant, text_of
from tests.simulation.playing import Outcome, play
from tests.simulation.scenario import Kind, Round, Scenario
from tests.simulation.scenes import SCENES
from tests.simulation.shrinking import kind_of, shrunk
from tests.simulation.simulate import failing, story
from tests.simulation.themes import drawn
from tests.simulation.writing import Write

pytestmark = pytest.mark.unit

FIRST, SEEDS, CHUNK = 80, 140, 10


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, CHUNK))
def test_nothing_is_lost_doubled_or_invented(first: int) -> None:
    assert failing(range(first, first + CHUNK)) == []


def _trace(hash_seed: int) -> str:
    command = [sys.executable, "-m", "tests.simulation.simulate", "--trace", "--seed", "3"]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_seed_gives_the_same_trace_in_every_process() -> None:
    first, second = _trace(1), _trace(2)
    assert first == second
    assert first.count("\n") > 100


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_of_a_mutant_is_there(mutant: Mutant) -> None:
    for module in mutant.modules:
        compile(text_of(mutant, module), module, "exec")


@pytest.mark.parametrize("name", SCENES)
def test_unchanged_ferry_passes_the_scenes(name: str) -> None:
    assert [play(scene).problems for scene in SCENES[name]] == [[]] * len(SCENES[name])


def test_a_mutant_is_found() -> None:
    command = [sys.executable, "-m", "tests.simulation.mutants", "--one", "no-heads", "--seeds", "3"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.match(r"\| [123] \|", told)


def _round(run: int, *records: int) -> Round:
    return Round(run, Kind.BOUNDED, tuple(Write(0, count) for count in records))


def _steps(outcome: Outcome) -> list[str]:
    """The trace without the fields of messages: a decoded message has all of them."""
    return [re.sub(r"(: \w+|is answered) .*", r"\1", line) if " to " in line else line for line in outcome.world.lines()]


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_connection_of_bytes_changes_nothing(seed: int) -> None:
    """Ferry's and kafka-python's encoders and parsers, with frames in pieces, go the same way as messages that are handed over."""
    without, with_bytes = play(drawn(seed)), play(replace(drawn(seed), framed=True))
    assert with_bytes.problems == []
    assert _steps(with_bytes) == _steps(without)


def test_a_process_that_stood_still_does_not_write_any_more() -> None:
    """It wakes up when another run has copied what it was about to commit."""
    fault = Fault(Act.FREEZE, "run-0", "EndTxn commit lane", 1, seconds=0.5)
    outcome = play(Scenario(1, (_round(0, 3), _round(1, 2)), (fault,)))
    assert (outcome.problems, outcome.happened) == ([], [fault])
    lines = outcome.world.lines()
    woken = next(place for place, line in enumerate(lines) if line.endswith("run-0 goes on"))
    assert any("run-1 reports 5 records, DONE" in line for line in lines[:woken])
    assert any("run-0 ends: Superseded" in line for line in lines[woken:])


@pytest.mark.parametrize("act", [Act.KILL, Act.KILL_AFTER])
def test_a_process_is_killed_around_its_commit(act: Act) -> None:
    fault = Fault(act, "run-0", "EndTxn commit lane", 1)
    outcome = play(Scenario(2, (_round(0, 3), _round(1, 2)), (fault,)))
    assert (outcome.problems, outcome.happened) == ([], [fault])
    assert any(line.endswith("run-0 is killed") for line in outcome.world.lines())
    assert all(process.ended for process in outcome.world.processes)


@pytest.mark.parametrize("kind", [Kind.BOUNDED, Kind.FOLLOWS])
@pytest.mark.parametrize("place", range(4))
def test_a_clock_that_jumps(kind: Kind, place: int) -> None:
    """By the last two places it jumps ahead: a run that follows may end early, and the next one copies the rest. By the first two the run
    does not follow for hours."""
    fault = Fault(Act.CLOCK, "run-0", "Fetch", 1, seconds=2.0, place=place)
    first = replace(_round(0, 3), kind=kind, later=(Write(0, 1),), pause=1.0, seconds=4.0)
    outcome = play(Scenario(6, (first, _round(1, 2)), (fault,)))
    assert (outcome.problems, outcome.happened) == ([], [fault])


@pytest.mark.parametrize("place", range(2))
@pytest.mark.parametrize("brokers", [1, 3])
def test_a_disk_that_is_full(brokers: int, place: int) -> None:
    """Of several brokers others lead its partitions; of one, nobody does until it is started again."""
    fault = Fault(Act.DISK, "run-0", "Produce lane", 1, seconds=20.0, place=place)
    outcome = play(Scenario(7, (_round(0, 3), _round(1, 2)), (fault,), target_brokers=brokers))
    assert (outcome.problems, outcome.happened) == ([], [fault])
    assert any("KAFKA_STORAGE_ERROR" in line or "leader_id=-1" in line or "error_code=56" in line for line in outcome.world.lines())


def test_a_replica_on_a_disk_that_is_full_is_no_new_leader() -> None:
    """It lacks what was committed since. The state topic has one there when its leader is replaced."""
    full = Fault(Act.DISK, "run-0", "EndTxn commit run", 1, seconds=50.0, place=0)
    faults = (full, Fault(Act.LAG, "run-1", "Produce lane", 1, seconds=25.0, place=9))
    outcome = play(Scenario(0, (_round(0, 3), _round(1, 2)), faults, target_brokers=3))
    assert (outcome.problems, outcome.happened) == ([], list(faults))


def test_a_broker_that_fails_answers_no_later_request_either() -> None:
    """Of the same connection. A client that got such an answer would wait for the earlier one for ever."""
    fault = Fault(Act.CRASH, "run-0", "InitProducerId lane", 1)
    for seed in range(12):
        outcome = play(Scenario(seed, (_round(0, 3),), (fault,)))
        assert (outcome.problems, outcome.happened) == ([], [fault])


def test_a_leader_that_was_replaced_hides_no_lane_that_was_used() -> None:
    """The newer run may read the number of lanes from it. A lane that is not fenced goes on when the older run does."""
    writes = tuple(Write(partition, 2) for partition in range(3))
    rounds = (Round(0, Kind.BOUNDED, writes, lanes=1), Round(1, Kind.BOUNDED, writes, lanes=3), Round(2, Kind.BOUNDED, (), lanes=1))
    cut_off = Fault(Act.CUT_OFF, "run-1", "InitProducerId run", 1, seconds=150.0)
    faults = (cut_off, Fault(Act.FREEZE, "run-1", "EndTxn commit lane", 1, seconds=45.0))
    for seed in range(6, 11):
        outcome = play(Scenario(seed, rounds, faults, partitions=3, target_brokers=3, small=True))
        assert [fault.act for fault in outcome.happened] == [Act.CUT_OFF, Act.FREEZE]
        asked = [line for line in outcome.world.lines() if " run-2 to target " in line and "InitProducerId" in line]
        assert {lane for lane in range(3) if any(f"ferry-a->b-{lane}" in line for line in asked)} == {0, 1, 2}
        assert not [problem for problem in outcome.problems if "doubled" in problem]


def test_another_try_reports_what_the_run_has_copied() -> None:
    """The first try is killed when all is committed, so the second one finds nothing to do."""
    outcome = play(Scenario(3, (_round(0, 3), Round(0, Kind.BOUNDED, ())), ()))
    assert outcome.problems == []
    assert [line for line in outcome.world.lines() if "run-1 reports 3 records, DONE" in line]


def _reported(outcome: Outcome, who: str) -> str:
    """How a run ended."""
    return next(line.split(f" {who} ", 1)[1] for line in outcome.world.lines() if f" {who} ends: " in line or f" {who} reports " in line)


@pytest.mark.parametrize(("seed", "place", "told"), [(12, 1, "TransactionHangs"), (7, 2, "reports 0 records")])
def test_two_brokers_that_were_both_replaced(seed: int, place: int, told: str) -> None:
    """The second run asks just these two for leaders. What it says is wrong, and nothing else is."""
    aims = ("EndTxn commit lane", place), ("Produce lane", 0)
    faults = tuple(Fault(Act.CUT_OFF, "run-0", request, 1, seconds=60.0, place=broker) for request, broker in aims)
    first, second = (replace(one, kind=Kind.FOLLOWS, seconds=2.0 + 2.0 * one.run) for one in (_round(0, 1), _round(1, 3)))
    outcome = play(Scenario(seed, (replace(first, beside=1.0), second), faults, partitions=1, target_brokers=3))
    assert (outcome.problems, len(outcome.happened)) == ([], 2)
    assert told in _reported(outcome, "run-1")


def test_a_run_that_its_own_late_request_fences_says_so_and_may_be_tried_again() -> None:
    """The run has asked again and gone on when the coordinator reads its first request."""
    fault = Fault(Act.STRAY, "run-0", "InitProducerId run", 1)
    told = set()
    for seed in range(20):
        outcome = play(Scenario(seed, (_round(0, 3), Round(0, Kind.BOUNDED, ())), (fault,)))
        assert (outcome.problems, outcome.happened) == ([], [fault])
        told.add(_reported(outcome, "run-0").split(": cluster")[0])
        assert "reports 3 records, DONE" in _reported(outcome, "run-1")
    assert told == {"ends: FenceLost", "reports 3 records, DONE"}


@pytest.mark.parametrize(("act", "request_", "nth"), [(Act.FREEZE_AFTER, "EndTxn abort run", 1), (Act.FREEZE, "InitProducerId run", 2)])
def test_a_run_that_stood_still_in_a_proof_may_fence_the_next_one(act: Act, request_: str, nth: int) -> None:
    """It is refused, but the broker aborts the transaction that the other one has open. Nobody is to blame."""
    told = set()
    for milliseconds in range(66, 78, 2):
        fault = Fault(act, "run-0", request_, nth, seconds=milliseconds / 1_000)
        rounds = (Round(0, Kind.BOUNDED, (), beside=0.1), Round(1, Kind.BOUNDED, ()))
        outcome = play(Scenario(1, rounds, (fault,), partitions=1, transaction_version=1))
        assert (outcome.problems, outcome.happened) == ([], [fault])
        told.add(_reported(outcome, "run-1").split(": cluster")[0])
        assert "ends: Superseded" in _reported(outcome, "run-0")
    assert told == {"ends: FenceLost", "reports 0 records, DONE"}


def test_a_run_reports_what_it_wrote_although_another_one_replaced_the_receipt() -> None:
    """Without transactions: it stands still when it has sent the receipt, and never writes the head."""
    fault = Fault(Act.FREEZE_AFTER, "run-0", "Produce ledger", 2, seconds=1.5)
    follows = replace(_round(0, 3), kind=Kind.FOLLOWS, seconds=2.0, beside=0.3)
    outcome = play(Scenario(1, (follows, _round(1, 1)), (fault,), partitions=1, exactly_once=False))
    assert (outcome.problems, outcome.happened) == ([], [fault])
    assert [_reported(outcome, who) for who in ("run-0", "run-1")] == ["reports 3 records, DONE", "reports 4 records, DONE"]


def test_what_the_source_deletes_is_a_loss() -> None:
    """The first run has copied; then records expire before the second run reads them."""
    fault = Fault(Act.EXPIRE, "run-1", "InitProducerId run", 1, cluster="source", place=3)
    outcome = play(Scenario(4, (_round(0, 1), _round(1, 4, 1)), (fault,), partitions=1))
    assert (outcome.problems, outcome.happened) == ([], [fault])
    assert any("run-1 reports 3 records" in line and "the source deleted 2 records" in line for line in outcome.world.lines())


def test_what_a_plan_saw_while_another_run_copied_is_no_failure() -> None:
    """The first run has made the topics when it stands still. The second one stands still when it has read the state, before it reads where
    the remote topic ends; meanwhile the third one copies."""
    faults = (Fault(Act.FREEZE_AFTER, "run-0", "Fetch", 1, seconds=60.0), Fault(Act.FREEZE_AFTER, "run-1", "Fetch", 1, seconds=1.9))
    outcome = play(Scenario(5, (_round(0), _round(1, 1), _round(2, 4)), faults, partitions=1))
    assert (outcome.problems, len(outcome.happened)) == ([], 2)
    assert any("run-1 reports 0 records, DONE" in line for line in outcome.world.lines())


def test_a_topic_that_a_plan_did_not_see_yet_was_not_deleted() -> None:
    """The first run has made only the flow's own topics when it is killed. The second one stands still when it has asked for the topics,
    before it reads the state; meanwhile the third one makes the remote topic and copies."""
    faults = (Fault(Act.KILL, "run-0", "DescribeConfigs", 3), Fault(Act.FREEZE_AFTER, "run-1", "Metadata", 4, seconds=1.9))
    outcome = play(Scenario(5, (_round(0), _round(1, 1), _round(2, 4)), faults, partitions=1))
    assert (outcome.problems, len(outcome.happened)) == ([], 2)
    assert any("run-1 reports 0 records, DONE" in line for line in outcome.world.lines())


def test_a_scenario_is_made_smaller() -> None:
    scenario = replace(drawn(5), faults=tuple(Fault(act, "run-0", "", 400) for act in (Act.LATE, Act.STRAY, Act.KILL)))
    small = shrunk(scenario, lambda one: any(fault.act is Act.STRAY for fault in one.faults))
    assert [fault.act for fault in small.faults] == [Act.STRAY]
    assert [len(entry.writes) + len(entry.later) for entry in small.rounds] == [0]
    assert "stray" not in story(play(small))
    assert kind_of("run-12 ends with X: at 7") == "run-N ends with X"
