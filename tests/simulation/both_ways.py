"""Makes a scenario one of two flows in both directions under one name: what is written, and which run copies where."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.simulation.scenario import Kind, Round, Scenario
from tests.simulation.writing import Write

# How many of the seeds have two flows.
SHARE = 0.12


def in_both_directions(scenario: Scenario, chance: Random) -> Scenario:
    """The same runs, some of them in the other direction, and each perhaps beside one of the other flow that was added."""
    ways: dict[int, bool] = {}
    rounds: list[Round] = []
    added = max(entry.run for entry in scenario.rounds)
    for entry in scenario.rounds:
        back = ways.setdefault(entry.run, chance.random() < 0.5)
        changed = replace(entry, back=back, writes=_sides(entry.writes, chance), later=_sides(entry.later, chance))
        if len(scenario.rounds) == 1 or chance.random() < 0.6:
            added += 1
            rounds.append(_beside(added, not back, scenario.partitions, chance))
        rounds.append(changed)
    brokers = chance.choice((scenario.source_brokers, scenario.target_brokers))
    faults = tuple(replace(one, cluster=chance.choice(("source", "target"))) for one in scenario.faults)
    return replace(scenario, rounds=tuple(rounds), faults=faults, source_brokers=brokers, both=True, exactly_once=True)


def _sides(writes: tuple[Write, ...], chance: Random) -> tuple[Write, ...]:
    return tuple(replace(one, back=chance.random() < 0.5) for one in writes)


def _beside(run: int, back: bool, partitions: int, chance: Random) -> Round:
    """A run of the other flow. The next one begins while it goes on."""
    writes = tuple(Write(chance.randrange(partitions), 1 + chance.randrange(3)) for _ in range(chance.randrange(4)))
    if chance.random() < 0.5:
        return Round(run, Kind.BOUNDED, _sides(writes, chance), beside=0.3 * chance.random(), back=back)
    seconds = 0.5 + 4.0 * chance.random()
    later = tuple(Write(chance.randrange(partitions), 1, back=chance.random() < 0.5) for _ in range(chance.randrange(4)))
    return Round(run, Kind.FOLLOWS, _sides(writes, chance), later, seconds / 4, seconds, seconds * chance.random(), back=back)
