"""Themes: six of ten seeds have one. A theme adds a fault that is rare among the others, and what it needs to do harm.

Each of them comes from a rule of Ferry that no seed had tried before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.simulation.both_ways import SHARE, in_both_directions
from tests.simulation.faults import Act, Fault
from tests.simulation.scenario import OLD, Kind, Round, Scenario, usual
from tests.simulation.writing import Write


@dataclass(frozen=True)
class Theme:
    """`acts`, `requests`: of the fault; without `acts` nothing goes wrong. `most`: the largest number of the request. `settings`: fields
    of the scenario."""

    acts: tuple[Act, ...]
    requests: tuple[str, ...]
    most: int
    settings: dict[str, Any]
    seconds: float = 0.0
    lanes: tuple[int | None, int | None] = (1, 1)  # of the first run, and of those after it
    beside: float | None = None  # the second run begins so soon after the first
    many: bool = False  # the first run has much to copy
    alone: bool = False  # nothing else goes wrong
    cluster: str = "target"


_NARROW = {"small": True, "narrow": True, "partitions": 1}
THEMES = (
    # A commit that the coordinator may or may not have.
    Theme((Act.NOT_ASKED, Act.STRAY), ("EndTxn commit lane",), 2, {"small": True}),
    Theme((Act.NOT_ASKED, Act.UNANSWERED, Act.KILL_AFTER), ("EndTxn commit lane", "TxnOffsetCommit"), 3, {"small": True}),
    # Requests of a transaction that come in the next one, which has the same epoch.
    Theme((Act.STRAY,), ("EndTxn commit lane", "TxnOffsetCommit"), 3, {"transaction_version": 1, "small": True}),
    # Positions that come after those of the next transaction. Newer brokers ask the coordinator first.
    Theme((Act.STRAY,), ("TxnOffsetCommit",), 3, {"transaction_version": 1, "release": OLD, "small": True, "partitions": 2}, many=True),
    # The answer to a commit is lost, and so is what its coordinator had in memory.
    Theme((Act.CRASH,), ("EndTxn commit lane", "EndTxn commit run"), 3, {"transaction_version": 2}),
    # The leader has a batch and does not say so: for a while, or until the request's time is over.
    Theme((Act.LAG,), ("Produce lane",), 4, {"target_brokers": 3, "small": True}, seconds=8.0),
    Theme((Act.LAG,), ("Produce lane",), 2, {"target_brokers": 3, "partitions": 2, "narrow": True}, seconds=60.0, many=True),
    # Leaders move while several batches are under way.
    Theme((Act.MOVE, Act.FAIL), ("Produce lane",), 8, {"target_brokers": 3, "small": True, "narrow": True}, seconds=2.0, many=True),
    # A leader does not know yet that it leads, but knows it when the next batch comes.
    Theme((Act.UNREADY,), ("Produce lane",), 2, {"narrow": True, "transaction_version": 1, "partitions": 1}, many=True, alone=True),
    # The source loses records in an unclean election, perhaps after they were copied.
    Theme((Act.UNCLEAN,), ("", "Fetch"), 30, {"source_brokers": 3}, seconds=2.0, cluster="source"),
    Theme((Act.UNCLEAN,), ("Produce lane", "EndTxn commit lane"), 3, {"source_brokers": 3, "small": True}, seconds=0.3, cluster="source"),
    # A leader was replaced and does not know it. Later runs ask it.
    Theme(
        (Act.CUT_OFF,),
        ("InitProducerId run", "EndTxn commit run", "Produce lane", "EndTxn commit lane"),
        2,
        {"target_brokers": 3, "small": True},
        seconds=120.0,
    ),
    # Partitions stay without a leader for longer than a lane waits.
    Theme((Act.OFFLINE,), ("Produce lane",), 3, {"small": True, "partitions": 3}, seconds=100.0, many=True, cluster="source"),
    # An older run wakes up in a lane that the newer one does not use.
    Theme((Act.FREEZE,), ("EndTxn commit lane", "TxnOffsetCommit", "Produce lane"), 4, {"partitions": 3, "small": True}, 0.6, (3, 1)),
    # An older driver takes lost lanes back while a newer run begins.
    Theme((Act.FREEZE, Act.FREEZE_AFTER), ("InitProducerId lane", "EndTxn abort run"), 16, {}, 1.5, (1, 1), 0.12),
    # A connection fails while fetches are under way.
    Theme((Act.UNANSWERED, Act.STRAY), ("Produce lane", "EndTxn commit lane"), 6, _NARROW, many=True),
    # Transactions are ended before they are committed, and some are whole except for that.
    Theme((Act.KILL, Act.KILL_AFTER, Act.FREEZE), ("EndTxn commit lane",), 2, {"small": True}, 0.6, many=True),
    # Without transactions.
    Theme(
        (Act.FREEZE, Act.KILL, Act.KILL_AFTER),
        ("Produce", "Produce ledger", "Produce state", "OffsetCommit"),
        8,
        {"exactly_once": False, "small": True},
        1.5,
        many=True,
    ),
    # Nothing goes wrong, with many transactions; or when a newer run takes over.
    Theme((), (), 0, _NARROW, many=True, alone=True),
    Theme((), (), 0, {"small": True, "narrow": True}, 0.0, (1, 1), 0.25, many=True, alone=True),
)

# One seed of so many has connections of bytes, which take two to three times as long.
FRAMED_EVERY = 20


def with_theme(scenario: Scenario, chance: Random) -> Scenario:
    """The scenario with one of the themes."""
    theme = chance.choice(THEMES)
    changed = replace(scenario, **{"exactly_once": True, **_faults(theme, scenario, chance), **theme.settings})
    partitions = min(scenario.partitions, changed.partitions)
    count = 4 + chance.randrange(8) + 12 * theme.many
    many = tuple(Write(number % changed.partitions, 1 + chance.randrange(3)) for number in range(count))
    first = replace(_within(scenario.rounds[0], partitions), writes=many, lanes=theme.lanes[0])
    if theme.beside is not None:
        first = replace(first, kind=Kind.BOUNDED, beside=theme.beside * (0.3 + chance.random()))
    elif theme.alone:
        first = replace(first, beside=None)
    others = tuple(replace(_within(entry, partitions), lanes=theme.lanes[1]) for entry in scenario.rounds[1:])
    second = others or (Round(first.run + 1, Kind.BOUNDED, many[:5], lanes=theme.lanes[1]),)
    return replace(changed, rounds=(first, *second))


def _faults(theme: Theme, scenario: Scenario, chance: Random) -> dict[str, Any]:
    """The fields of the scenario that say what goes wrong."""
    if not theme.acts:
        return {"faults": (), "mishaps": 0.0}
    request, act = chance.choice(theme.requests), chance.choice(theme.acts)
    seconds = theme.seconds * (0.3 + chance.random())
    # What an earlier run has left matters too, unless the theme says how the runs differ.
    alike = theme.beside is None and theme.lanes[0] == theme.lanes[1]
    who = chance.choice(("run-0", "run-1")) if alike else "run-0"
    fault = Fault(act, who, request, 1 + int(theme.most * chance.random() ** 2), seconds, theme.cluster, chance.randrange(1_000))
    return {"faults": (fault,), "mishaps": 0.0} if theme.alone else {"faults": (fault, *scenario.faults[:2])}


def _within(entry: Round, partitions: int) -> Round:
    """The round, which writes only to so many partitions."""
    writes, later = ([replace(one, partition=one.partition % partitions) for one in some] for some in (entry.writes, entry.later))
    return replace(entry, writes=tuple(writes), later=tuple(later))


def drawn(seed: int) -> Scenario:
    """The scenario of a seed."""
    chance = Random(seed)
    scenario = replace(usual(chance, seed), framed=seed % FRAMED_EVERY == 0)
    scenario = with_theme(scenario, chance) if chance.random() < 0.6 else scenario
    if any(fault.act is Act.UNCLEAN for fault in scenario.faults):
        return _rewritten(scenario, chance)
    return in_both_directions(scenario, chance) if chance.random() < SHARE else scenario


def _more(scenario: Scenario, chance: Random) -> tuple[Write, ...]:
    return tuple(Write(number % scenario.partitions, 2) for number in range(chance.randrange(8)))


def _rewritten(scenario: Scenario, chance: Random) -> Scenario:
    """A source that loses records. It deletes none beside: after a loss, Ferry does not know the leader epoch
    (docs/troubleshooting.md). No broker is cut off: Ferry may have read what only that one had."""
    faults = tuple(fault for fault in scenario.faults if fault.act not in {Act.EXPIRE, Act.CUT_OFF})
    rounds = tuple(replace(entry, later=(*entry.later, *_more(scenario, chance)), pause=0.3 * chance.random()) for entry in scenario.rounds)
    return replace(scenario, rounds=rounds, faults=faults, exactly_once=True, source_brokers=3, restarts=chance.random() < 0.5)
