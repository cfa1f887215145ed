"""Nothing is found in a faithful copy, and each planted anomaly is found as what it is, and as nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drills.histories.anomalies import Kind, counted
from tests.drills.histories.checking import check, lost_at_source, revived_at_source, torn_at_source
from tests.drills.histories.model import History, Outcome, Poll, Seen, Send
from tests.drills.histories.worlds import World, make_world, without

pytestmark = pytest.mark.unit

SEEDS = st.integers(0, 2**32)
PLACE, OTHER = ("orders", 0), ("orders", 1)
Plant = Callable[[World, random.Random], History]


def plain_world() -> World:
    """Ten committed records of three producers in one partition; 0, 1 and 2 are of one transaction, 3 of another."""
    world = World(transactions={"t": Outcome.OK, "u": Outcome.OK})
    for number in range(10):
        name = "t" if number < 3 else "u" if number == 3 else None
        send = Send((number % 3, number), PLACE, number, Outcome.OK, name, b"k")
        world.sends.append(send)
        world.target[PLACE].append(Seen(number * 2, send.id, PLACE))
    world.ends[PLACE] = 10
    return world


def lost(world: World, chance: random.Random) -> History:
    return without(world.history(chance), world.sends[chance.randrange(9)].id)


def unseen(world: World, chance: random.Random) -> History:
    return without(world.history(chance), world.sends[9].id)


def duplicate_of(world: World, send: Send, chance: random.Random) -> History:
    world.target[PLACE].append(world.seen(send.id, PLACE))
    return world.history(chance)


def duplicate(world: World, chance: random.Random) -> History:
    return duplicate_of(world, chance.choice(world.sends), chance)


def aborted(world: World, chance: random.Random) -> History:
    world.transactions["u"] = Outcome.FAILED
    return world.history(chance)


def refused(world: World, chance: random.Random) -> History:
    world.replaced(world.sends[5], outcome=Outcome.FAILED, offset=None)
    return world.history(chance)


def never_sent(world: World, chance: random.Random) -> History:
    world.target[PLACE].append(world.seen(chance.choice([(7, 7), None]), PLACE))
    return world.history(chance)


def altered(world: World, chance: random.Random) -> History:
    where = chance.randrange(10)
    world.target[PLACE][where] = world.target[PLACE][where]._replace(intact=False)
    return world.history(chance)


def misplaced(world: World, chance: random.Random) -> History:
    world.target[OTHER].append(world.target[PLACE].pop()._replace(offset=0))
    world.ends = {}
    return world.history(chance)


def torn(world: World, chance: random.Random) -> History:
    world.transactions["t"] = Outcome.UNKNOWN
    return without(world.history(chance), world.sends[chance.randrange(3)].id)


def swapped(world: World, chance: random.Random) -> History:
    """Two neighbours, which are of two producers, change places."""
    at, log = chance.randrange(9), world.target[PLACE]
    first, second = log[at], log[at + 1]
    log[at : at + 2] = [second._replace(offset=first.offset), first._replace(offset=second.offset)]
    return world.history(chance)


def swapped_without_offsets(world: World, chance: random.Random) -> History:
    """Two of one producer, of which the source's offsets are not known."""
    for number in (4, 7):
        world.replaced(world.sends[number], outcome=Outcome.UNKNOWN, offset=None)
    log = world.target[PLACE]
    log[4], log[7] = log[7]._replace(offset=log[4].offset), log[4]._replace(offset=log[7].offset)
    return world.history(chance)


def polled(world: World, *offsets: tuple[int, ...]) -> History:
    """One more reader, with these polls by number of the record."""
    history = world.history(random.Random(1))
    log = world.target[PLACE]
    return replace(history, polls=[*history.polls, *(Poll("third", PLACE, tuple(log[at] for at in numbers)) for numbers in offsets)])


def inconsistent(world: World, chance: random.Random) -> History:
    history = polled(world)
    other = world.target[PLACE][4]._replace(offset=world.target[PLACE][5].offset)
    return replace(history, polls=[*history.polls, Poll("third", PLACE, (other,))])


PLANTS: list[tuple[Kind, Plant]] = [
    (Kind.LOST, lost),
    (Kind.UNSEEN, unseen),
    (Kind.DUPLICATE, duplicate),
    (Kind.ABORTED, aborted),
    (Kind.ABORTED, refused),
    (Kind.NEVER_SENT, never_sent),
    (Kind.ALTERED, altered),
    (Kind.MISPLACED, misplaced),
    (Kind.TORN, torn),
    (Kind.ORDER, swapped),
    (Kind.PRODUCER_ORDER, swapped_without_offsets),
    (Kind.INCONSISTENT, inconsistent),
    (Kind.POLL_SKIP, lambda world, _: polled(world, (0, 1), (3, 4))),
    (Kind.INT_POLL_SKIP, lambda world, _: polled(world, (0, 1, 3))),
    (Kind.NONMONOTONIC, lambda world, _: polled(world, (0, 1), (1, 2))),
    (Kind.INT_NONMONOTONIC, lambda world, _: polled(world, (0, 1, 1, 2))),
]


def test_every_kind_is_planted() -> None:
    assert {kind for kind, _ in PLANTS} == set(Kind)


@given(SEEDS)
def test_nothing_is_found_in_a_faithful_copy(seed: int) -> None:
    chance = random.Random(seed)
    assert check(make_world(chance).history(chance)) == []


@pytest.mark.parametrize(("kind", "plant"), PLANTS, ids=[f"{kind.value}-{number}" for number, (kind, _) in enumerate(PLANTS)])
@given(seed=SEEDS)
def test_what_is_planted_is_found_and_nothing_else(kind: Kind, plant: Plant, seed: int) -> None:
    found = check(plant(plain_world(), random.Random(seed)))
    assert {anomaly.kind for anomaly in found} == {kind}
    assert counted(found)[kind.value] == len(found)


@given(SEEDS)
def test_one_record_less_is_found_in_any_world(seed: int) -> None:
    """Whatever else happened: a committed record of a topic that keeps all is missed."""
    chance = random.Random(seed)
    world = make_world(chance)
    history = world.history(chance)
    committed = [send for send in world.sends if send.place[0] == "orders" and history.outcome(send) is Outcome.OK]
    if committed:
        gone = chance.choice(committed)
        assert {anomaly.kind for anomaly in check(without(history, gone.id))} <= {Kind.LOST, Kind.UNSEEN}
        assert check(without(history, gone.id))


@given(SEEDS)
def test_what_was_not_copied_yet_is_not_missed(seed: int) -> None:
    """Readers stop anywhere while copying goes on."""
    chance = random.Random(seed)
    world = make_world(chance)
    world.ends = {}
    for log in world.target.values():
        del log[chance.randint(0, len(log)) :]
    assert check(world.history(chance)) == []


def test_of_a_compacted_topic_only_the_newest_of_a_key_is_missed() -> None:
    world = plain_world()
    history = replace(world.history(random.Random(1)), compacted=frozenset({"orders"}))
    assert check(without(history, world.sends[4].id)) == []
    assert {anomaly.kind for anomaly in check(without(history, world.sends[9].id))} == {Kind.UNSEEN}


def test_what_the_source_tore_is_judged_part_by_part() -> None:
    world = plain_world()
    history = torn(world, random.Random(1))
    assert check(replace(history, torn_at_source=frozenset({"t"}))) == []


@given(SEEDS)
def test_what_the_source_itself_holds_twice_is_no_duplicate_and_a_third_is(seed: int) -> None:
    chance = random.Random(seed)
    world = plain_world()
    twice = chance.choice(world.sends[:-1])
    history = duplicate_of(world, twice, chance)
    assert {anomaly.kind for anomaly in check(history)} == {Kind.DUPLICATE}
    history = replace(history, source_times={twice.id: 2})
    assert check(history) == []
    again = duplicate_of(world, twice, chance)
    assert {anomaly.kind for anomaly in check(replace(again, source_times={twice.id: 2}))} == {Kind.DUPLICATE}


def test_a_record_that_its_producer_wrote_anew_is_acknowledged_where_it_stands_last() -> None:
    world = plain_world()
    early = world.sends[4]
    world.replaced(early, offset=10)
    history = duplicate_of(world, world.sends[4], random.Random(1))
    assert check(replace(history, source_times={early.id: 2})) == []


def test_of_what_the_source_itself_tore_the_same_part_is_asked_for() -> None:
    world = plain_world()
    world.transactions["t"] = Outcome.UNKNOWN
    ids = [send.id for send in world.sends]
    history = without(world.history(random.Random(1)), ids[1])
    held = dict.fromkeys([id for id in ids if id != ids[1]], 1)
    assert torn_at_source(history) == []
    assert {anomaly.kind for anomaly in check(history)} == {Kind.TORN}
    told = replace(history, source_times=held)
    assert torn_at_source(told) == ["t"]
    assert check(told) == []
    assert {anomaly.kind for anomaly in check(without(told, ids[0]))} == {Kind.TORN}
    assert {anomaly.kind for anomaly in check(replace(world.history(random.Random(1)), source_times=held))} == {Kind.TORN}
    whole = replace(history, source_times=dict.fromkeys(ids, 1))
    assert {anomaly.kind for anomaly in check(whole)} == {Kind.TORN}


def test_a_committed_record_that_the_source_itself_does_not_show_is_not_asked_for() -> None:
    world = plain_world()
    ids = [send.id for send in world.sends]
    history = without(world.history(random.Random(1)), ids[0])
    assert {anomaly.kind for anomaly in check(history)} == {Kind.LOST}
    shown = replace(history, source_times=dict.fromkeys(ids, 1))
    assert {anomaly.kind for anomaly in check(shown)} == {Kind.LOST}
    lost = replace(history, source_times=dict.fromkeys(ids[1:], 1))
    assert lost_at_source(lost) == {ids[0]}
    assert check(lost) == []
    nothing_later = replace(without(history, ids[-1]), source_times=dict.fromkeys(ids[1:-1], 1))
    assert {anomaly.kind for anomaly in check(nothing_later)} == {Kind.UNSEEN}


@given(SEEDS)
def test_an_aborted_record_that_the_source_itself_shows_as_committed_may_be_seen(seed: int) -> None:
    chance = random.Random(seed)
    world = plain_world()
    history = aborted(world, chance)
    assert {anomaly.kind for anomaly in check(history)} == {Kind.ABORTED}
    held = dict.fromkeys([send.id for send in world.sends], 1)
    assert check(replace(history, source_times=held)) == []
    assert revived_at_source(replace(history, source_times=held)) == 1
    del held[world.sends[3].id]
    assert {anomaly.kind for anomaly in check(replace(history, source_times=held))} == {Kind.ABORTED}
    assert revived_at_source(replace(history, source_times=held)) == 0
