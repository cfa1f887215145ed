"""Makes a scenario that fails smaller: it leaves out faults, rounds and writes while the same thing does not hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from tests.simulation.scenario import Scenario

T = TypeVar("T")
# A person waits for it.
MOST_PLAYS = 150


def kind_of(problem: str) -> str:
    """A problem without its numbers."""
    return re.sub(r"\d+", "N", problem.partition(":")[0])


def shrunk(scenario: Scenario, fails: Callable[[Scenario], bool]) -> Scenario:
    """The smallest scenario found. `fails`: whether a scenario fails as this one does."""
    plays, smaller = 0, True
    while smaller:
        smaller = False
        for candidate in _smaller(scenario):
            plays += 1
            if plays > MOST_PLAYS:
                return scenario
            if fails(candidate):
                scenario, smaller = candidate, True
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario without one thing, the largest things first."""
    if scenario.mishaps:
        yield replace(scenario, mishaps=0.0)
    for place in range(len(scenario.faults)):
        yield replace(scenario, faults=_without(scenario.faults, place))
    if len(scenario.rounds) > 1:
        yield replace(scenario, rounds=scenario.rounds[:-1])
    for place, entry in enumerate(scenario.rounds):
        less = [replace(entry, later=_without(entry.later, at)) for at in range(len(entry.later))]
        less += [replace(entry, writes=_without(entry.writes, at)) for at in range(len(entry.writes))]
        less += [replace(entry, lanes=None)] if entry.lanes is not None else []
        for one in less:
            yield replace(scenario, rounds=(*scenario.rounds[:place], one, *scenario.rounds[place + 1 :]))
    if scenario.narrow:
        yield replace(scenario, narrow=False)
    if scenario.small:
        yield replace(scenario, small=False)


def _without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return items[:place] + items[place + 1 :]
