"""Leaders follow a topic, never a name: a topic that took another one's name has no leaders."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ferry.clusters.net import leaders as module
from ferry.clusters.net.leaders import (
    FIRST_PAUSE_SECONDS,
    GONE_SECONDS,
    KNOWN_SECONDS,
    LONGEST_PAUSE_SECONDS,
    NO_LEADER,
    NO_TOPIC_ID,
    Leader,
    Leaders,
)

pytestmark = pytest.mark.unit

FIRST, SECOND = UUID(int=1), UUID(int=2)


def topic(name: str, topic_id: UUID | None, error: int = 0) -> Any:
    partition = SimpleNamespace(partition_index=0, leader_id=4, leader_epoch=9)
    return SimpleNamespace(name=name, topic_id=topic_id, error_code=error, partitions=[] if error else [partition])


class Listing:
    """A connection that answers Metadata requests from a list."""

    def __init__(self, *answers: list[Any]) -> None:
        self._answers = list(answers)
        self.learned: list[Any] = []

    async def send(self, _: Any) -> Any:
        return SimpleNamespace(topics=self._answers.pop(0))

    async def answers_of_two(self, request: Any) -> list[Any]:
        return [await self.send(request), await self.send(request)]

    def learn_brokers(self, answer: Any) -> None:
        self.learned.append(answer)


def refreshed(*answers: list[Any], expected: dict[str, UUID] | None = None) -> Leaders:
    connection: Any = Listing(*answers)
    leaders = Leaders(connection, ["t"], expected)
    for _ in answers:
        asyncio.run(leaders.refresh())
    return leaders


def test_leader_and_id() -> None:
    leaders = refreshed([topic("t", FIRST)], expected={"t": FIRST})
    assert (leaders.of("t", 0), leaders.of("t", 1), leaders.topic_id("t")) == (Leader(4, 9), NO_LEADER, FIRST)
    assert (leaders.name_of(None, FIRST), leaders.name_of("x", None), leaders.name_of(None, SECOND)) == ("t", "x", "")


def test_a_topic_under_the_same_name_has_no_leader_but_is_named() -> None:
    leaders = refreshed([topic("t", FIRST)], [topic("t", SECOND)], expected={"t": FIRST})
    assert (leaders.of("t", 0), leaders.topic_id("t")) == (NO_LEADER, SECOND)
    assert leaders.name_of(None, FIRST) == "t"  # late answers still tell whom they are about


@pytest.mark.parametrize("expected", [{"t": FIRST}, {"t": NO_TOPIC_ID}, None])
def test_clusters_without_topic_ids_are_taken_by_name(expected: dict[str, UUID] | None) -> None:
    leaders = refreshed([topic("t", None)], expected=expected)
    assert (leaders.of("t", 0), leaders.topic_id("t")) == (Leader(4, 9), NO_TOPIC_ID)


@pytest.mark.parametrize(("error", "found"), [(3, None), (100, None), (5, FIRST), (29, FIRST)])
def test_only_an_unknown_topic_is_gone(error: int, found: UUID | None) -> None:
    leaders = refreshed([topic("t", FIRST)], [topic("t", NO_TOPIC_ID, error)])
    assert (leaders.of("t", 0), leaders.topic_id("t")) == (NO_LEADER, found)


def test_pauses_between_refreshes_double_while_leaders_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(module, "clock", SimpleNamespace(monotonic=lambda: now))
    connection: Any = Listing(*([topic("t", FIRST)] for _ in range(99)))
    leaders = Leaders(connection, ["t"])
    asked = []
    for _ in range(1_000):  # ten seconds without a leader: whoever misses it looks a hundred times a second
        if leaders.rested:
            asked.append(round(now - 100, 2))
            asyncio.run(leaders.refresh())
        now += 0.01
    assert [round(after - before, 1) for before, after in pairwise(asked[:5])] == [0.1, 0.2, 0.4, 0.8]
    assert all(round(after - before, 1) >= LONGEST_PAUSE_SECONDS for before, after in pairwise(asked[4:]))
    assert 10 <= len(asked) <= 14
    now += 60
    asyncio.run(leaders.refresh())
    now += FIRST_PAUSE_SECONDS + 0.01
    assert leaders.rested, "the next trouble begins with the shortest pause"


def test_a_refresh_that_fails_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "clock", SimpleNamespace(monotonic=lambda: 100.0))
    connection: Any = Listing()
    leaders = Leaders(connection, ["t"])
    with pytest.raises(IndexError):
        asyncio.run(leaders.refresh())
    assert not leaders.rested


def test_the_connection_learns_the_brokers_of_every_answer() -> None:
    """A broker that was away when the connection was opened leads again."""
    connection: Any = Listing([topic("t", FIRST)], [topic("t", FIRST)])
    leaders = Leaders(connection, ["t"])
    asyncio.run(leaders.refresh())
    asyncio.run(leaders.refresh())
    assert [[found.name for found in answer.topics] for answer in connection.learned] == [["t"], ["t"]]


@pytest.mark.parametrize(
    ("errors", "gone"),
    [((3, 3), True), ((100, 3), True), ((3, 0), False), ((3, 0, 3), False), ((0,), False), ((3, 5), False), ((3,), False)],
)
def test_a_topic_is_gone_when_all_answers_of_some_seconds_say_so(
    errors: tuple[int, ...], gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=9.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(module, "clock", clock)
    connection: Any = Listing(*([topic("t", FIRST, error)] for error in errors))
    leaders = Leaders(connection, ["t"])
    for _ in errors:
        clock.now += GONE_SECONDS + 1
        asyncio.run(leaders.refresh())
    assert leaders.is_gone("t") is gone


def test_only_what_is_not_known_is_asked_for() -> None:
    asked: list[list[str]] = []

    class Counting(Listing):
        async def send(self, request: Any) -> Any:
            asked.append([topic.name for topic in request.topics])
            return SimpleNamespace(topics=[topic(name, FIRST, 3 if name == "missing" else 0) for name in asked[-1]])

    connection: Any = Counting()
    leaders = Leaders(connection)
    for wanted in (["t"], ["t", "u"], ["u", "t"], ["missing"], ["missing"]):
        asyncio.run(leaders.known(wanted))
    leaders.forget(["t"])
    asyncio.run(leaders.known(["t", "u"]))
    assert asked == [["t"], ["u"], ["missing"], ["missing"], ["t"]]
    assert (leaders.partitions("t"), leaders.partitions("missing"), leaders.is_missing("missing")) == ((0,), (), True)


def test_a_topic_with_a_partition_without_leader_is_asked_for_again() -> None:
    led, without = topic("t", FIRST), topic("t", FIRST)
    without.partitions.append(SimpleNamespace(partition_index=1, leader_id=-1, leader_epoch=9))
    connection: Any = Listing([without], [led])
    leaders = Leaders(connection)
    for _ in range(3):
        asyncio.run(leaders.known(["t"]))
    assert leaders.of("t", 1) == NO_LEADER


def test_what_was_told_long_ago_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=9.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(module, "clock", clock)
    connection: Any = Listing([topic("t", FIRST)], [topic("t", FIRST)])
    leaders = Leaders(connection)
    for seconds, left in ((0.0, 1), (KNOWN_SECONDS * 0.9, 1), (KNOWN_SECONDS * 0.2, 0)):
        clock.now += seconds
        asyncio.run(leaders.known(["t"]))
        assert len(connection._answers) == left


def led(epoch: int, node: int, topic_id: UUID | None = FIRST, error: int = 0) -> list[Any]:
    """The answer of a broker about topic t."""
    partition = SimpleNamespace(partition_index=0, leader_id=node, leader_epoch=epoch)
    return [SimpleNamespace(name="t", topic_id=topic_id, error_code=error, partitions=[] if error else [partition])]


@pytest.mark.parametrize(
    ("later", "found"),
    [
        (led(4, 1), Leader(2, 5)),  # a broker that the others have lost
        (led(5, 3), Leader(3, 5)),
        (led(6, 1), Leader(1, 6)),
        (led(-1, 1), Leader(1, -1)),  # an old broker: nobody knows
        (led(0, 1, SECOND), Leader(1, 0)),  # the topic was created again
        (led(6, NO_LEADER.node), Leader(NO_LEADER.node, 6)),
    ],
)
def test_a_lower_leader_epoch_of_the_same_topic_does_not_count(later: list[Any], found: Leader) -> None:
    assert refreshed(led(5, 2), later).of("t", 0) == found


def test_without_topic_ids_a_lower_leader_epoch_counts() -> None:
    """The topic may have been created again."""
    assert refreshed(led(5, 2, None), led(0, 1, None)).of("t", 0) == Leader(1, 0)


def test_a_lower_leader_epoch_does_not_count_after_the_topic_was_forgotten() -> None:
    connection: Any = Listing(led(5, 2), led(4, 1))
    leaders = Leaders(connection)
    for _ in range(2):
        asyncio.run(leaders.known(["t"]))
        leaders.forget(["t"])
    assert leaders.partitions("t") == ()
    assert connection._answers == []
    connection._answers.append(led(3, 1))
    asyncio.run(leaders.known(["t"]))
    assert leaders.of("t", 0) == Leader(2, 5)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("old", "topic_id"),
    [(led(4, 1), FIRST), (led(4, 1, None), None), (led(-1, -1, NO_TOPIC_ID, 3), FIRST)],
    ids=["replaced", "without topic ids", "it does not know the topic"],
)
def test_of_two_brokers_the_one_that_knows_more_counts(old: list[Any], topic_id: UUID | None, turned: bool) -> None:
    both = [old, led(5, 2, topic_id)]
    connection: Any = Listing(*(both[::-1] if turned else both))
    leaders = Leaders(connection)
    asyncio.run(leaders.ask_two(["t"]))
    assert (leaders.of("t", 0), leaders.is_missing("t")) == (Leader(2, 5), False)
