"""Kinds of positions, and where in the source's topics a random one of each kind lies."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tests.translation.histories import Histories

from ferry.clusters.net.partitions import TopicPartition

# How far back positions of these kinds reach, in offsets.
RECENT = 150
AROUND_THE_LOSS = 30


class Moment(Enum):
    """When a group commits; a position exists by then."""

    BEFORE = "before MM2 was started"
    LIVE = "while MM2 copied"
    STOPPED = "while MM2 was stopped"
    AGAIN = "while MM2 copied again, after its restart"
    LAST = "after the last run of Ferry"


@dataclass
class Marks:
    """What is known of the source's logs beside what can be read there.

    `markers` and `in_transactions`: offsets of control records, and of records of transactions, aborted ones too. `stopped`: where each
    partition ended when MM2 was stopped. `backfilled`: where `late` ended when Ferry backfilled it, 0 before. `run`: where each
    partition ended at Ferry's last run before the last records.
    """

    markers: list[int] = field(default_factory=list)
    in_transactions: list[int] = field(default_factory=list)
    stopped: Mapping[tuple[str, int], int] = field(default_factory=dict)
    run: Mapping[tuple[str, int], int] = field(default_factory=dict)
    backfilled: int = 0


@dataclass(frozen=True)
class Group:
    """A group with one position."""

    name: str
    kind: str
    moment: Moment
    place: TopicPartition
    offset: int


class Chooser:
    """Chooses random positions in what the source's logs hold at the time of asking."""

    def __init__(self, histories: Histories, marks: Marks, chance: random.Random) -> None:
        self._histories, self._marks, self._chance = histories, marks, chance

    def group(self, number: int, kind: Kind, moment: Moment) -> Group:
        place, offset = kind.choose(self)
        return Group(f"group-{number:03}", kind.label, moment, place, offset)

    def _place(self, *names: str) -> tuple[TopicPartition, int]:
        """A partition of one of these topics, and its end."""
        topic = self._histories.topics[self._chance.choice(names)]
        place = self._chance.choice([TopicPartition(*key) for key in self._histories.logs if key[0] == topic])
        return place, self._histories.logs[place].end

    def start(self) -> tuple[TopicPartition, int]:
        place, _ = self._place("plain", "transactional", "compacted")
        return place, 0

    def old(self) -> tuple[TopicPartition, int]:
        place, end = self._place("plain")
        return place, self._chance.randrange(1, end // 2)

    def recent(self) -> tuple[TopicPartition, int]:
        place, end = self._place("plain")
        return place, self._chance.randrange(end - RECENT, end)

    def in_transaction(self) -> tuple[TopicPartition, int]:
        return self._place("transactional")[0], self._chance.choice(self._marks.in_transactions)

    def marker(self) -> tuple[TopicPartition, int]:
        return self._place("transactional")[0], self._chance.choice(self._marks.markers)

    def end(self) -> tuple[TopicPartition, int]:
        return self._place("plain", "transactional", "compacted")

    def empty(self) -> tuple[TopicPartition, int]:
        return self._place("empty")

    def expired(self) -> tuple[TopicPartition, int]:
        place, end = self._place("expired")
        return place, self._chance.randint(0, end)

    def gone(self) -> tuple[TopicPartition, int]:
        place, end = self._place("gone")
        return place, self._chance.randint(0, end)

    def compacted(self) -> tuple[TopicPartition, int]:
        place, end = self._place("compacted")
        return place, self._chance.randint(0, end)

    def lossy(self) -> tuple[TopicPartition, int]:
        place, end = self._place("lossy")
        return place, self._chance.randint(self._marks.stopped[place] - AROUND_THE_LOSS, end)

    def backfilled(self) -> tuple[TopicPartition, int]:
        place, end = self._place("late")
        return place, self._chance.randrange(1, self._marks.backfilled or end)

    def behind_the_backfill(self) -> tuple[TopicPartition, int]:
        place, end = self._place("late")
        return place, self._chance.randint(self._marks.backfilled, end)

    def before_the_restart(self) -> tuple[TopicPartition, int]:
        place, _ = self._place("plain")
        return place, self._chance.randrange(1, self._marks.stopped[place])

    def ahead(self) -> tuple[TopicPartition, int]:
        place, end = self._place("plain")
        return place, self._chance.randrange(self._marks.run[place] + 1, end + 1)


ANY = (Moment.BEFORE, Moment.LIVE, Moment.STOPPED, Moment.AGAIN)
RUNNING = (Moment.LIVE, Moment.AGAIN)
LATE = (Moment.AGAIN,)


@dataclass(frozen=True)
class Kind:
    """A kind of position: how one is chosen, and at which moments groups may commit it."""

    label: str
    choose: Callable[[Chooser], tuple[TopicPartition, int]]
    moments: tuple[Moment, ...] = ANY


KINDS = (
    Kind("start of the log", Chooser.start),
    Kind("old data", Chooser.old),
    Kind("recent data", Chooser.recent, RUNNING),
    Kind("inside a transaction", Chooser.in_transaction),
    Kind("at a transaction's marker", Chooser.marker),
    Kind("end of the log", Chooser.end),
    Kind("empty partition", Chooser.empty),
    Kind("partition expired before it was copied", Chooser.expired),
    Kind("partition expired after it was copied", Chooser.gone),
    Kind("compacted log", Chooser.compacted),
    Kind("around records that were lost before they were copied", Chooser.lossy, (Moment.STOPPED, Moment.AGAIN)),
    Kind("behind a backfill", Chooser.behind_the_backfill, LATE),
    Kind("in what was backfilled", Chooser.backfilled),
    Kind("before MM2's restart, committed after it", Chooser.before_the_restart, LATE),
    Kind("ahead of Ferry's last run", Chooser.ahead, (Moment.LAST,)),
)


def deal(count: int, chance: random.Random) -> dict[Moment, list[tuple[int, Kind]]]:
    """Every kind equally often (up to one), each group with a moment at random."""
    dealt: dict[Moment, list[tuple[int, Kind]]] = {moment: [] for moment in Moment}
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        dealt[chance.choice(kind.moments)].append((number, kind))
    return dealt
