"""The reading half of a lane against scripted answers: what is asked of whom, and what becomes of what the source says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from tests.copying.feed_bench import LIMITS, TOPIC_ID, Bench, batch, parts_of, task

from ferry.clusters.net.leaders import Leader
from ferry.copying import source_feed as module
from ferry.copying.lane_messages import Failure, PartitionTask
from ferry.copying.source_feed import PATIENCE_SECONDS, PAUSE_SECONDS
from ferry.errors import NotAuthorized
from ferry.handling import Record

pytestmark = pytest.mark.unit

CORRUPT, UNKNOWN_TOPIC, NOT_LEADER, NOT_AUTHORIZED, ODD = 2, 3, 6, 29, 999


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    def build(*tasks: PartitionTask, **more: Any) -> Bench:
        made = Bench(*(tasks or (task(),)), **more)
        monkeypatch.setattr(module, "clock", made.source)
        monkeypatch.setattr(module, "log_bounds", made.source.log_bounds)
        monkeypatch.setattr(module, "divergence_of", made.source.divergence_of)
        return made

    return build


def test_one_fetch_for_each_broker_with_what_the_source_must_know(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1, start=5), task(2))
    made.source.leaders[2] = Leader(2, 9)
    made.feed.pump(0)
    made.feed.pump(0)
    assert made.asked() == [(1, [(0, 0), (1, 5)]), (2, [(2, 0)])], "no second one before the first is answered"
    request = made.source.requests[0][0]
    assert (request.max_bytes, request.isolation_level) == (LIMITS.fetch, 1)
    assert [(part.partition_max_bytes, part.current_leader_epoch, part.last_fetched_epoch) for part in parts_of(request)] == [
        (500, 7, 3)
    ] * 2


def test_partitions_take_turns(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1), task(2))
    orders = []
    for _ in range(3):
        made.feed.pump(0)
        ((_, parts),) = made.asked()
        orders.append([partition for partition, _ in parts])
        made.answer(error=NOT_LEADER, partition=9)
    assert orders == [[0, 1, 2], [1, 2, 0], [2, 0, 1]]


def test_units_come_in_order_and_the_cursor_goes_on(bench: Callable[..., Bench]) -> None:
    made = bench()
    made.feed.pump(0)
    ((cursor, units),) = made.answer(records=batch(0, 1, 2) + batch(3, epoch=6)[:-1])
    assert (made.source.woken, cursor, [(unit.upstream_start, unit.upstream_end) for unit in units]) == (1, made.cursors[0], [(0, 3)])
    made.feed.pump(0)
    ((request, _, _),) = made.source.requests
    assert [(part.fetch_offset, part.last_fetched_epoch) for part in parts_of(request)] == [(3, 4)]
    assert made.feed.arrivals() == []


def test_what_was_excluded_or_aborted_moves_the_cursor_without_a_unit(bench: Callable[..., Bench]) -> None:
    made = bench(replace(task(), excluded=((0, 2), (3, 5))))
    made.feed.pump(0)
    assert made.asked() == [(1, [(0, 2)])]
    assert made.answer(records=batch(0, 1, 2)) != []
    made.feed.pump(0)
    assert made.asked() == [(1, [(0, 5)])]


def test_of_a_batch_only_what_is_wanted_becomes_a_unit(bench: Callable[..., Bench]) -> None:
    made = bench(replace(task(), excluded=((1, 2),)))
    made.feed.pump(0)
    ((_, (unit,)),) = made.answer(records=batch(0, 1, 2, 3))
    assert unit.runs == ((0, 1), (2, 2))
    made.feed.pump(0)
    ((_, (unit,)),) = made.answer(records=batch(4, producer=5) + batch(5, producer=6) + batch(6), aborted=6)
    assert unit.runs == ((4, 1), (6, 1)), "an aborted transaction is passed over"
    made.feed.pump(0)
    ((_, units),) = made.answer(records=b"".join(batch(offset) for offset in range(7, 99)))
    assert len(units) > 1
    assert all(unit.count > 1 and unit.size <= 900 for unit in units), "merged up to what the remote topic takes"


def test_what_a_handler_drops_altogether_is_noted(bench: Callable[..., Bench]) -> None:
    seen: list[Record] = []

    def drop(record: Record) -> list[Record]:
        seen.append(record)
        return []

    made = bench(task(5), handle=drop)
    made.feed.pump(0)
    assert made.answer(partition=5, records=batch(0, 1)) == []
    made.cursors[0].settle_fetched()
    (receipt,) = made.cursors[0].receipts("run")
    assert (receipt.upstream_end, receipt.counters.dropped, {(record.topic, record.partition) for record in seen}) == (2, 2, {("t", 5)})


def test_answers_to_what_nobody_asks_any_more_are_left(bench: Callable[..., Bench]) -> None:
    made = bench()
    made.feed.pump(0)
    made.feed.abandon()
    made.feed.pump(0)
    assert len(made.source.requests) == 2, "what is abandoned holds up nothing"
    assert made.answer(records=batch(0, 1)) == []
    assert made.cursors[0].fetched == 0
    made.feed.abandon()
    made.feed.pump(0)
    assert made.answer(records=batch(0, 1)) == [], "abandoned too"
    made.cursors[0].fetched_to(2, 4)
    assert made.answer(records=batch(0, 1)) == [], "asked at another offset"
    made.cursors[0].revert()
    made.feed.pump(0)
    made.cursors[0].fail(NotAuthorized("gone"))
    assert made.answer(records=batch(0, 1)) == []


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (
            {"error": CORRUPT},
            Failure("UnreadableBatch", "the source answers at offset 0: CORRUPT_MESSAGE (2): the log is corrupt there", passing=False),
        ),
        ({"error": NOT_AUTHORIZED}, Failure("PartitionError", "the source refuses to read it: grant Read on topic t", passing=False)),
        (
            {"records": batch(0)[:-1] + b"\x07"},
            Failure("UnreadableBatch", "the batch at offset 0 does not match its checksum: the source's log is corrupt", passing=False),
        ),
    ],
)
def test_what_cannot_pass_stops_the_partition_by_name(bench: Callable[..., Bench], answer: dict[str, Any], failure: Failure) -> None:
    made = bench()
    made.feed.pump(0)
    assert made.answer(**answer) == []
    assert made.cursors[0].failure == failure
    made.feed.pump(0)
    assert made.source.requests == []


def test_a_batch_that_takes_too_much_memory_says_what_to_raise(bench: Callable[..., Bench]) -> None:
    made = bench(limits=LIMITS._replace(opened=5), handle=lambda record: [record])
    made.feed.pump(0)
    made.answer(records=batch(0, 1))
    assert made.cursors[0].failure is not None
    assert made.cursors[0].failure.error == "BatchTooLarge"
    assert "more than 5 bytes" in made.cursors[0].failure.problem
    assert made.cursors[0].failure.problem.endswith("; raise ferry.memory.mb")


def test_a_handler_that_stops_at_the_first_record_stops_the_partition(bench: Callable[..., Bench]) -> None:
    made = bench(handle=lambda _: None)
    made.feed.pump(0)
    made.answer(records=batch(0, 1))
    assert made.cursors[0].failure is not None
    assert (made.cursors[0].failure.error, made.cursors[0].failure.problem[:9]) == ("HandlerFailed", "offset 0:")


@pytest.mark.parametrize("answer", [{"error": NOT_LEADER}, {"error": UNKNOWN_TOPIC}, {"error": ODD}, {"lso": 0}, None])
def test_what_may_pass_is_asked_again_after_a_pause_until_patience_ends(bench: Callable[..., Bench], answer: dict[str, Any] | None) -> None:
    made = bench()
    cursor, refreshed = made.cursors[0], 0
    while cursor.failure is None:
        assert made.source.now < 1_000 + PATIENCE_SECONDS + 6, "nobody waits that long"
        made.feed.pump(0)
        if answer is None:
            made.source.requests.pop()[2].failure(OSError("reset"))
            assert made.feed.arrivals() == []
        else:
            made.answer(**answer)
        made.feed.pump(0)
        assert made.source.requests == [], "a pause first"
        made.mend()
        refreshed += 1
        assert (made.source.refreshed, cursor.doubted) == (refreshed, False)
        made.source.now += PAUSE_SECONDS if refreshed < 3 else 5.0
    assert made.source.now >= 1_000 + PATIENCE_SECONDS
    assert (cursor.failure.error, cursor.failure.passing) == ("PartitionUnavailable", True)
    why = {
        None: "connection reset",
        NOT_LEADER: "NOT_LEADER_OR_FOLLOWER (6)",
        UNKNOWN_TOPIC: "UNKNOWN_TOPIC_OR_PARTITION (3)",
        ODD: "error (999)",
    }
    found = "its last stable offset went back to 0" if answer == {"lso": 0} else why[answer["error"] if answer else None]
    assert cursor.failure.problem == f"not readable for 75 s: {found}"


def test_trouble_that_passes_is_forgotten(bench: Callable[..., Bench]) -> None:
    made = bench()
    for offset in range(5):
        made.feed.pump(0)
        made.answer(error=NOT_LEADER)
        made.source.now += PATIENCE_SECONDS
        made.feed.pump(0)
        made.answer(records=batch(offset))
    assert (made.cursors[0].failure, made.cursors[0].fetched) == (None, 5)


def test_a_partition_without_a_leader_is_waited_for(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1))
    made.source.leaders = {0: Leader(-1, -1), 1: Leader(0, 0)}
    made.feed.pump(0)
    assert made.asked() == [(0, [(1, 0)])], "broker 0 is one as any other"
    made.mend()
    assert made.source.refreshed == 1
    made.source.now += PATIENCE_SECONDS + 1
    made.feed.pump(0)
    assert made.cursors[0].failure is not None
    assert made.cursors[0].failure.problem == "not readable for 75 s: it has no leader"
    assert made.cursors[1].failure is None


def test_a_refused_login_stops_what_was_asked_for(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1))
    made.source.leaders[1] = Leader(2, 0)
    made.source.problem = NotAuthorized("cluster A: refused")
    made.feed.pump(0)
    made.source.requests.pop(0)[2].failure(OSError("refused"))
    made.feed.arrivals()
    assert [cursor.failure is not None and cursor.failure.error for cursor in made.cursors] == ["NotAuthorized", False]
    made.mend()
    assert made.source.refreshed == 1


def test_what_arrives_behind_a_lost_answer_is_taken(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1))
    made.source.leaders[1] = Leader(2, 0)
    made.feed.pump(0)
    made.source.requests.pop(0)[2].failure(OSError("reset"))
    ((cursor, _),) = made.answer(partition=1, records=batch(0, 1))
    assert (cursor, made.cursors[0].fetched) == (made.cursors[1], 0)


def test_leaders_are_asked_for_until_they_are_known_and_not_during_a_pause(bench: Callable[..., Bench]) -> None:
    made = bench()
    made.mend()
    assert made.source.refreshed == 0
    made.feed.pump(0)
    made.answer(error=NOT_LEADER)
    made.source.throttled_nodes = {1}
    made.mend()
    assert made.source.refreshed == 0
    made.source.throttled_nodes, made.source.refusing = set(), True
    made.mend()
    made.source.refusing = False
    made.mend()
    made.mend()
    assert made.source.refreshed == 2


@pytest.mark.parametrize("follows", [True, False])
def test_a_lane_that_follows_asks_for_leaders_although_nothing_fails(bench: Callable[..., Bench], follows: bool) -> None:
    """A leader that is cut off from its cluster answers as if nothing arrived."""
    made = bench(replace(task(), follows=follows))
    made.source.age = module.LOOK_SECONDS - 0.1
    made.mend()
    assert made.source.refreshed == 0
    made.source.age = module.LOOK_SECONDS + 0.1
    made.mend()
    assert made.source.refreshed == follows
    made.source.ids["t"] = UUID(int=9)
    made.mend()
    assert (made.cursors[0].failure is not None) == follows, "a topic that was created again is noticed too"


def test_a_lane_that_follows_and_has_everything_fetches_once_a_beat(bench: Callable[..., Bench]) -> None:
    made = bench(replace(task(), follows=True), beat=0.1)
    made.feed.pump(0)
    made.answer(records=batch(0, 1), lso=3)
    made.feed.pump(0)
    assert made.asked() == [(1, [(0, 2)])], "the source has more"
    made.answer(records=batch(2), lso=3)
    made.feed.pump(0)
    assert (made.asked(), made.feed.asking) == ([], False)
    made.source.now += 0.11
    made.feed.pump(0)
    assert (made.asked(), made.feed.asking) == ([(1, [(0, 3)])], True)


def test_after_a_silence_nothing_waits_for_a_beat(bench: Callable[..., Bench]) -> None:
    made = bench(replace(task(), follows=True), beat=0.1)
    made.feed.pump(0)
    made.source.now += 0.9
    made.answer(records=batch(0), lso=1)
    made.feed.pump(0)
    assert made.asked() == [(1, [(0, 1)])]


def test_nobody_waits_for_a_leader_that_was_replaced(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1))
    made.source.leaders[1] = Leader(2, 0)
    made.feed.pump(0)
    made.answer(error=NOT_LEADER)
    made.source.leaders[1] = Leader(3, 1)
    made.mend()
    made.feed.pump(0)
    assert made.asked() == [(2, [(1, 0)]), (3, [(1, 0)])], "broker 2 may hang"


def test_another_topic_of_that_name_and_a_topic_that_is_gone_stop(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1))
    made.source.ids["t"] = None
    made.cursors[0].troubled_since = 5.0
    made.feed.check_identities()
    assert [cursor.failure for cursor in made.cursors] == [None, None], "one broker may not have heard of it yet"
    made.source.gone = {"t"}
    made.feed.check_identities()
    gone = Failure("SourceMissing", "the source topic was deleted while it was copied", passing=False)
    assert [cursor.failure for cursor in made.cursors] == [gone, None], "only one that is in trouble: a leader may know it later"
    made = bench()
    made.feed.check_identities()
    assert made.cursors[0].failure is None
    made.feed.pump(0)
    made.answer(error=UNKNOWN_TOPIC)
    made.source.ids["t"] = UUID(int=9)
    made.mend()
    problem = f"its topic id was {TOPIC_ID} and is {UUID(int=9)} now; see ferry.on.recreate"
    assert made.cursors[0].failure == Failure("SourceRecreated", problem, passing=False)


def test_fetches_fit_what_may_be_held_and_one_always_goes(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1), limits=LIMITS._replace(held=2_000))
    made.source.leaders[1] = Leader(2, 0)
    made.feed.pump(1_001)
    assert made.asked() == []
    made.feed.pump(1_000)
    assert len(made.asked()) == 1, "the next one would not fit beside the first"
    made.feed.pump(0)
    assert len(made.asked()) == 2
    alone = bench(limits=LIMITS._replace(held=10))
    alone.feed.pump(1)
    assert alone.asked() == []
    alone.feed.pump(0)
    assert len(alone.asked()) == 1


def test_lanes_that_follow_leave_room_for_each_other(bench: Callable[..., Bench]) -> None:
    """Each has a request at the broker all the time."""
    made = bench(replace(task(), follows=True), limits=LIMITS._replace(fetch=10_000, partition_fetch=10_000))
    for lanes in (1, 3):
        made.source.meter.own = dict.fromkeys(range(lanes), 0)
        made.feed.abandon()
        made.feed.pump(0)
        assert made.source.requests[-1][0].max_bytes == LIMITS.held // (2 * lanes)
        made.source.meter.reserved = 0


def test_after_a_batch_larger_than_a_fetch_as_much_is_reserved(bench: Callable[..., Bench]) -> None:
    made = bench(replace(task(), batch_limit=800), limits=LIMITS._replace(fetch=50, held=900))
    made.feed.pump(101)
    assert made.asked() == [], "a batch of the topic may take 800"
    made.feed.pump(100)
    assert len(made.asked()) == 1
    made.answer(records=batch(*range(90)))
    made.feed.pump(100)
    assert made.asked() == []
    made.feed.pump(0)
    assert len(made.asked()) == 1


def test_what_is_read_counts_against_the_bandwidth(bench: Callable[..., Bench]) -> None:
    made = bench(rate=100.0)
    made.feed.pump(0)
    records = batch(0, 1)
    made.answer(records=records)
    for seconds, requests in ((0.0, 0), (len(records) / 100 - 0.01, 0), (0.02, 1)):
        made.source.now += seconds
        made.feed.pump(0)
        assert len(made.asked()) == requests


def test_a_broker_that_asked_for_a_pause_gets_it(bench: Callable[..., Bench]) -> None:
    made = bench(task(0), task(1))
    made.source.leaders[1] = Leader(2, 0)
    made.source.throttled_nodes = {1}
    made.feed.pump(0)
    assert [node for node, _ in made.asked()] == [2]
