"""Histories in which everything is right, made up at random: a source with transactions, a faithful copy, readers that read it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.drills.histories.model import History, Outcome, Place, Poll, RecordId, Seen, Send

PLACES: tuple[Place, ...] = (("orders", 0), ("orders", 1), ("accounts", 0))
COMPACTED = frozenset({"accounts"})
PRODUCERS = 3
READERS = ("early", "late")


@dataclass
class World:
    """What was sent, and the target's log by partition, from which `history` lets the readers read."""

    sends: list[Send] = field(default_factory=list)
    transactions: dict[str, Outcome] = field(default_factory=dict)
    target: dict[Place, list[Seen]] = field(default_factory=lambda: {place: [] for place in PLACES})
    ends: dict[Place, int] = field(default_factory=lambda: dict.fromkeys(PLACES, 0))

    def history(self, chance: random.Random) -> History:
        """All readers read everything, a few records at a time."""
        polls = []
        for reader in READERS:
            for place, log in self.target.items():
                rest = list(log)
                while rest:
                    count = chance.randint(1, 4)
                    polls.append(Poll(reader, place, tuple(rest[:count])))
                    rest = rest[count:]
        return History(self.sends, self.transactions, polls, self.ends, COMPACTED)

    def seen(self, record: RecordId, place: Place) -> Seen:
        """A copy of a record behind all others."""
        log = self.target[place]
        return Seen((log[-1].offset if log else -1) + 1, record, place)

    def sent(self) -> Mapping[RecordId, Send]:
        """Sends by id."""
        return {send.id: send for send in self.sends}

    def replaced(self, old: Send, **changes: object) -> None:
        """A send as something else."""
        self.sends[self.sends.index(old)] = old._replace(**changes)


def make_world(chance: random.Random, rounds: int = 25) -> World:
    """Rounds of single records and transactions of all producers, each copied at once if it was committed."""
    world = World()
    sequences = dict.fromkeys(range(PRODUCERS), 0)
    for number in range(rounds):
        producer = chance.randrange(PRODUCERS)
        name = chance.choice([None, f"t{number}"])
        ended = chance.choice([Outcome.OK, Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN])
        happened = ended is Outcome.OK or (ended is Outcome.UNKNOWN and chance.random() < 0.5)
        if name is not None:
            world.transactions[name] = ended
        for _ in range(1 if name is None else chance.randint(1, 5)):
            sequences[producer] += 1
            send = Send((producer, sequences[producer]), chance.choice(PLACES), None, Outcome.OK, name, b"k%d" % chance.randrange(3))
            _send(world, send, ended, chance, happened=happened)
        for place in PLACES:
            world.ends[place] += chance.randrange(2)  # a marker
    return world


def _send(world: World, send: Send, ended: Outcome, chance: random.Random, *, happened: bool) -> None:
    place = send.place
    offset = world.ends[place]
    if send.transaction is None:
        send = send._replace(outcome=ended, offset=offset if ended is Outcome.OK else None)
    else:
        send = send._replace(offset=offset)
    world.sends.append(send)
    if happened or send.transaction is not None:
        world.ends[place] += 1
    if happened:
        seen = world.seen(send.id, place)
        world.target[place].append(replace_offset(seen, seen.offset + chance.randrange(3)))


def replace_offset(seen: Seen, offset: int) -> Seen:
    """The same record elsewhere."""
    return seen._replace(offset=offset)


def without(history: History, record: RecordId) -> History:
    """As if nobody had seen it."""
    polls = [poll._replace(records=tuple(seen for seen in poll.records if seen.id != record)) for poll in history.polls]
    return replace(history, polls=polls)
