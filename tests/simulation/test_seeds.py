"""A short series of seeds; `make simulate` plays as many as wanted. And: a seed always gives the same, and a mutant is found."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.simulation.faults import Act, Fault
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutating import ROOT, text_of
from tests.simulation.playing import play
from tests.simulation.scenario import Kind, Round, Scenario
from tests.simulation.shrinking import kind_of, shrunk
from tests.simulation.simulate import failing, story
from tests.simulation.themes import drawn
from tests.simulation.writing import Write

pytestmark = pytest.mark.unit

SEEDS, CHUNK = 140, 10


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
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
def test_the_text_of_a_mutant_is_there(mutant: object) -> None:
    compile(text_of(mutant), "mutant", "exec")  # type: ignore[arg-type]


def test_a_mutant_is_found() -> None:
    command = [sys.executable, "-m", "tests.simulation.mutants", "--one", "no-heads", "--seeds", "3"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert told.startswith("| 1 |")


def _round(run: int, *records: int) -> Round:
    return Round(run, Kind.BOUNDED, tuple(Write(0, count) for count in records))


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


def test_another_try_reports_what_the_run_has_copied() -> None:
    """The first try is killed when all is committed, so the second one finds nothing to do."""
    outcome = play(Scenario(3, (_round(0, 3), Round(0, Kind.BOUNDED, ())), ()))
    assert outcome.problems == []
    assert [line for line in outcome.world.lines() if "run-1 reports 3 records, DONE" in line]


def test_what_the_source_deletes_is_a_loss() -> None:
    """The first run has copied; then records expire before the second run reads them."""
    fault = Fault(Act.EXPIRE, "run-1", "InitProducerId run", 1, cluster="source", place=3)
    outcome = play(Scenario(4, (_round(0, 1), _round(1, 4, 1)), (fault,), partitions=1))
    assert (outcome.problems, outcome.happened) == ([], [fault])
    assert any("run-1 reports 3 records" in line and "the source deleted 2 records" in line for line in outcome.world.lines())


def test_a_scenario_is_made_smaller() -> None:
    scenario = replace(drawn(5), faults=tuple(Fault(act, "run-0", "", 400) for act in (Act.LATE, Act.STRAY, Act.KILL)))
    small = shrunk(scenario, lambda one: any(fault.act is Act.STRAY for fault in one.faults))
    assert [fault.act for fault in small.faults] == [Act.STRAY]
    assert [len(entry.writes) + len(entry.later) for entry in small.rounds] == [0]
    assert "stray" not in story(play(small))
    assert kind_of("run-12 ends with X: at 7") == "run-N ends with X"
