"""Themes: half of all seeds have one. A theme adds a fault that is rare among the others, and what it needs to do harm.

Each of them comes from a rule of Ferry that no seed had tried before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.simulation.faults import Act, Fault
from tests.simulation.scenario import Kind, Round, Scenario, usual
from tests.simulation.writing import Write


@dataclass(frozen=True)
class Theme:
    """`acts` and `requests`: of the fault. `most`: the largest number of the request. `settings`: fields of the scenario."""

    acts: tuple[Act, ...]
    requests: tuple[str, ...]
    most: int
    settings: dict[str, int | bool]
    seconds: float = 0.0
    lanes: tuple[int | None, int | None] = (1, 1)  # of the first run, and of those after it
    beside: float | None = None  # the second run begins so soon after the first


THEMES = (
    # A commit that the coordinator may or may not have.
    Theme((Act.NOT_ASKED, Act.STRAY), ("EndTxn commit lane",), 2, {"small": True}),
    Theme((Act.NOT_ASKED, Act.UNANSWERED, Act.KILL_AFTER), ("EndTxn commit lane", "TxnOffsetCommit"), 3, {"small": True}),
    # Requests of a transaction that come in the next one, which has the same epoch.
    Theme((Act.STRAY,), ("EndTxn commit lane", "TxnOffsetCommit"), 3, {"transaction_version": 1, "small": True}),
    # The answer to a commit is lost, and so is what its coordinator had in memory.
    Theme((Act.CRASH,), ("EndTxn commit lane", "EndTxn commit run"), 3, {"transaction_version": 2}),
    # The leader has a batch and does not say so.
    Theme((Act.LAG,), ("Produce lane",), 4, {"target_brokers": 3, "small": True}, seconds=8.0),
    # Leaders move while several batches are under way.
    Theme((Act.MOVE, Act.FAIL), ("Produce lane",), 8, {"target_brokers": 3, "small": True}, seconds=2.0),
    # An older run wakes up in a lane that the newer one does not use.
    Theme((Act.FREEZE,), ("EndTxn commit lane", "TxnOffsetCommit", "Produce lane"), 4, {"partitions": 3, "small": True}, 0.6, (3, 1)),
    # An older driver takes lost lanes back while a newer run begins.
    Theme((Act.FREEZE, Act.FREEZE_AFTER), ("InitProducerId lane", "EndTxn abort run"), 16, {}, 1.5, (1, 1), 0.12),
    # A connection fails while fetches are under way.
    Theme((Act.UNANSWERED, Act.STRAY), ("Produce lane", "EndTxn commit lane"), 6, {"small": True, "partitions": 1}),
)

# One seed of so many has connections of bytes, which take two to three times as long.
FRAMED_EVERY = 20


def with_theme(scenario: Scenario, chance: Random) -> Scenario:
    """The scenario with one of the themes."""
    theme = chance.choice(THEMES)
    request, act = chance.choice(theme.requests), chance.choice(theme.acts)
    seconds = theme.seconds * (0.3 + chance.random())
    # What an earlier run has left matters too, unless the theme says how the runs differ.
    alike = theme.beside is None and theme.lanes[0] == theme.lanes[1]
    who = chance.choice(("run-0", "run-1")) if alike else "run-0"
    fault = Fault(act, who, request, 1 + int(theme.most * chance.random() ** 2), seconds, "target", chance.randrange(1_000))
    changed = replace(scenario, exactly_once=True, faults=(fault, *scenario.faults[:2]), **theme.settings)  # type: ignore[arg-type]
    partitions = min(scenario.partitions, changed.partitions)
    many = tuple(Write(number % changed.partitions, 1 + chance.randrange(3)) for number in range(4 + chance.randrange(8)))
    first = replace(_within(scenario.rounds[0], partitions), writes=many, lanes=theme.lanes[0])
    if theme.beside is not None:
        first = replace(first, kind=Kind.BOUNDED, beside=theme.beside * (0.3 + chance.random()))
    others = tuple(replace(_within(entry, partitions), lanes=theme.lanes[1]) for entry in scenario.rounds[1:])
    second = others or (Round(first.run + 1, Kind.BOUNDED, many[:5], lanes=theme.lanes[1]),)
    return replace(changed, rounds=(first, *second))


def _within(entry: Round, partitions: int) -> Round:
    """The round, which writes only to so many partitions."""
    writes, later = ([replace(one, partition=one.partition % partitions) for one in some] for some in (entry.writes, entry.later))
    return replace(entry, writes=tuple(writes), later=tuple(later))


def drawn(seed: int) -> Scenario:
    """The scenario of a seed."""
    chance = Random(seed)
    scenario = replace(usual(chance, seed), framed=seed % FRAMED_EVERY == 0)
    return with_theme(scenario, chance) if chance.random() < 0.5 else scenario
