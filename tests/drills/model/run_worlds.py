"""What two runs of one flow are made of in the model, and what must fit together of what they committed.

Plans are Ferry's own (plan_partitions, covered).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple
from uuid import UUID

from tests.drills.model.broker import NOBODY, Contents, Id, Position, Span

from ferry.copying.partition_plan import PartitionFacts, PlanRules, plan_partitions
from ferry.copying.transaction import TransactionState
from ferry.ledger.receipts import Receipt, ReceiptKind, covered
from ferry.ledger.state import Head

TOPIC_ID = UUID(int=1)
REMOTE_ID = UUID(int=2)
SEEDED = (-1, -1)
COPIED, BACKFILLED = ReceiptKind.COPIED.value, ReceiptKind.BACKFILLED.value

Unit = tuple[str, int]  # kind, source offset


class Scene(NamedTuple):
    """`first`: where an earlier seed put the position (None: never seen); records `[0, end)` lie at the source. Budgets bound the world."""

    end: int
    first: int | None
    backfill: bool = False
    losses: int = 1
    timeouts: int = 1
    again: tuple[int, int] = (1, 1)  # how often each driver tries its lane again
    doubles: int = 1  # how often Spark starts a task again by itself
    follows: bool = False  # receipts grow with each commit


class Driver(NamedTuple):
    """A run's driver: the next thing it does, the epoch by which it holds the lane, and what it read."""

    at: str = "start"
    lane: int = -1
    head: int | None = None
    position: Position | None = None
    units: tuple[Unit, ...] = ()
    again: int = 0


class Attempt(NamedTuple):
    """One execution of a task. `done` units are committed as far as it knows, `expected` is the position that they left."""

    run: int
    at: str
    pair: int = NOBODY
    units: tuple[Unit, ...] = ()
    expected: int | None = None
    done: int = 0
    state: TransactionState = TransactionState.READY
    opened: int = 0
    in_doubt: bool = False
    receipt: Span | None = None  # of the transaction at hand
    growing: Span | None = None  # what the last commit wrote


class Late(NamedTuple):
    """A request whose sender gave it up, but that the target may still see."""

    what: str
    lane: int
    pair: int
    contents: Contents


class Runs(NamedTuple):
    """The whole world. `run`: who holds the run's id; `holder`: the newest run that has taken over."""

    run: int
    lanes: tuple[Id, ...]
    there: Contents
    drivers: tuple[Driver, ...]
    attempts: tuple[Attempt, ...] = ()
    late: tuple[Late, ...] = ()
    losses: int = 0
    timeouts: int = 0
    doubles: int = 0
    holder: int = -1
    wrong: str = ""

    def driver(self, number: int, **changes: object) -> Runs:
        """With one driver changed."""
        drivers = list(self.drivers)
        drivers[number] = drivers[number]._replace(**changes)
        return self._replace(drivers=tuple(drivers))

    def attempt(self, number: int, **changes: object) -> Runs:
        """With one attempt changed."""
        attempts = list(self.attempts)
        attempts[number] = attempts[number]._replace(**changes)
        return self._replace(attempts=tuple(attempts))

    def lane(self, number: int, found: Id) -> Runs:
        """With one lane's id changed."""
        lanes = list(self.lanes)
        lanes[number] = found
        return self._replace(lanes=tuple(lanes))

    def unstable(self, what: str) -> bool:
        """Whether an open transaction holds something of this kind."""
        return any(of.open is not None and getattr(of.open, what) not in {None, ()} for of in self.lanes)


Step = tuple[str, Runs]
NAMES = ("old", "new")
ENDED = frozenset({"finished", "superseded", "fenced", "stopped"})
STALE = -9


@cache
def planned(scene: Scene, head: int | None, committed: int | None, receipts: tuple[Span, ...]) -> tuple[Unit, ...] | str:
    """Ferry's own plan as units, or the error that stops the partition."""
    facts = PartitionFacts(
        topic="t",
        partition=0,
        topic_id=TOPIC_ID,
        remote_topic="A.t",
        remote_topic_id=REMOTE_ID,
        remote_partitions=1,
        remote_end=0,
        log_start=0,
        end=scene.end,
        stable_end=scene.end,
        start=0,
        since=0 if scene.backfill else None,
        head=None if head is None else Head("t", 0, head, str(TOPIC_ID), "A.t", str(REMOTE_ID)),
        committed=committed,
        covered=covered(as_receipts(receipts)),
        claimed_by="f",
    )
    plan = plan_partitions([facts], PlanRules("f", "r"))[0]
    if plan.failure is not None:
        return plan.failure.error
    return tuple((segment.kind.value, offset) for segment in plan.segments for offset in range(segment.start, segment.end))


@cache
def as_receipts(spans: tuple[Span, ...]) -> tuple[Receipt, ...]:
    """Spans as Ferry's receipts."""
    return tuple(Receipt(ReceiptKind(kind), "t", 0, str(TOPIC_ID), "A.t", str(REMOTE_ID), start, end) for kind, start, end, *_ in spans)


def start(scene: Scene, lanes: int = 1) -> Runs:
    """Before both runs, with this many transactional ids."""
    there = Contents() if scene.first is None else Contents((), (), scene.first, Position(scene.first, SEEDED))
    drivers = tuple(Driver(again=again) for again in scene.again)
    return Runs(NOBODY, (Id(0),) * lanes, there, drivers, losses=scene.losses, timeouts=scene.timeouts, doubles=scene.doubles)


def plain(world: Runs) -> Runs:
    """The same world without what no longer matters: of epochs only whether they are current, the one before, or stale."""
    names = tuple({of.epoch: 1, of.last: 0, NOBODY: NOBODY} for of in world.lanes)

    def named(where: int, pair: int) -> int:
        return names[where].get(pair, STALE)

    lanes = tuple(Id(1, named(where, of.last), of.open, of.ended) for where, of in enumerate(world.lanes))
    home = len(world.lanes) == 1
    drivers = tuple(
        Driver(driver.at) if driver.at in ENDED else driver._replace(lane=named(0 if home else number, driver.lane))
        for number, driver in enumerate(world.drivers)
    )
    attempts = tuple(
        Attempt(attempt.run, attempt.at) if attempt.at in ENDED else attempt._replace(pair=named(0 if home else attempt.run, attempt.pair))
        for attempt in world.attempts
    )
    late = (request._replace(pair=named(request.lane, request.pair)) for request in world.late)
    kept = tuple(sorted((request for request in late if request.pair > 0), key=repr))
    return world._replace(lanes=lanes, drivers=drivers, attempts=attempts, late=kept)


@cache
def disagreement(first: int, there: Contents) -> str:
    """What does not fit together of what is committed; empty when all does."""
    offsets = [offset for _, offset in there.records]
    copied = [offset for kind, offset in there.records if kind == COPIED]
    position = first if there.position is None else there.position.offset
    explained = [offset for start, end in covered(as_receipts(there.receipts)) for offset in range(start, end)]
    if len(set(offsets)) < len(offsets):
        return "a record is there twice"
    if copied != sorted(copied):
        return "records are out of order"
    if copied != list(range(first, position)):
        return "position and records disagree"
    if there.head is not None and there.head != position:
        return "head and position disagree"
    if sorted(offsets) != explained:
        return "receipts and records disagree"
    if {mark for span in there.receipts for marks in span[3:] for mark in marks} - set(there.marks):
        return "a receipt names records of an aborted transaction"
    return ""
