"""The appender gives up batches: those that the target refuses, that are too large, and that nobody accepts for long."""

from __future__ import annotations

import pytest
from tests.copying.appender_bench import Bench, FakeBatch

from ferry.clusters.net.leaders import Leader
from ferry.copying.appender import RETRY_SECONDS, PartitionRefusal

pytestmark = pytest.mark.unit


KEY, OTHER = ("A.t", 0), ("A.t", 1)
NOT_LEADER, TOO_LARGE, OUT_OF_ORDER, INVALID_TIMESTAMP, UNEXPECTED = 6, 10, 45, 32, 46


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (29, "TOPIC_AUTHORIZATION_FAILED (29): grant Write on topic A.t"),
        (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53): grant Write on transactional id ferry-x-0"),
    ],
)
def test_a_missing_right_stops_the_partition_and_is_named(bench: Bench, code: int, problem: str) -> None:
    bench.enqueue((0,))
    bench.run()
    bench.enqueue((1,), (2,), (3,))
    bench.broker.script.extend([None, code, None])
    bench.run()
    assert bench.appender.refusals.get(KEY) == PartitionRefusal(problem, passing=False, denied=True)
    assert bench.broker.log[KEY] == [0, 1]
    assert bench.consistent()
    assert bench.appender.refusals.get(OTHER) is None


@pytest.mark.parametrize(
    ("answer", "why"), [(OSError("not sent: no route"), "not sent: no route"), (NOT_LEADER, "NOT_LEADER_OR_FOLLOWER (6)")]
)
def test_what_is_not_accepted_for_long_is_given_up_and_says_why(bench: Bench, answer: int | OSError, why: str) -> None:
    bench.broker.script.extend([answer] * 1_000)
    bench.enqueue((0,))
    bench.run()
    assert bench.appender.refusals.get(KEY) == PartitionRefusal(f"not accepted for 75 s: {why}", passing=True)
    assert bench.clock.now - 1_000 == pytest.approx(RETRY_SECONDS, abs=1)
    assert not bench.appender.busy(KEY)


def test_a_refusal_stops_its_partition_at_the_last_accepted_batch(bench: Bench) -> None:
    bench.enqueue((0,))
    bench.enqueue((0,), key=OTHER)
    bench.run()
    bench.enqueue((1,), (2,), (3,))
    bench.broker.script.extend([0, INVALID_TIMESTAMP, None])
    bench.appender.pump()
    bench.run()
    bench.enqueue((4,))
    bench.enqueue((1,), (2,), key=OTHER)
    bench.run()
    assert bench.broker.log == {KEY: [0, 1], OTHER: [0, 1, 2]}
    refusal = bench.appender.refusals.get(KEY)
    assert refusal is not None
    assert (refusal.passing, "INVALID_TIMESTAMP" in refusal.problem) == (False, True)
    assert bench.appender.refusals.get(OTHER) is None
    assert bench.consistent()


def test_a_batch_that_is_too_large_is_halved_until_it_fits(bench: Bench) -> None:
    bench.enqueue((0,), (1, 2, 3, 4), (5, 6))
    bench.broker.script.extend([None, TOO_LARGE, None, TOO_LARGE, None, None])
    bench.run()
    assert bench.broker.log[KEY] == list(range(7))
    assert [unit.names for _, unit, _ in bench.accepted] == [(0,), (1,), (2,), (3, 4), (5, 6)]
    assert bench.consistent()


def test_a_batch_that_cannot_be_divided_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(_: FakeBatch) -> tuple[FakeBatch, FakeBatch]:
        raise ValueError("no such codec")

    monkeypatch.setattr(bench.appender, "_halve", damaged)
    bench.enqueue((0,), (1, 2), (3,))
    bench.broker.script.extend([None, TOO_LARGE, None])
    bench.run()
    refusal = bench.appender.refusals.get(KEY)
    assert refusal is not None
    assert "no such codec" in refusal.problem
    assert bench.broker.log[KEY] == [0]


def test_one_record_that_is_too_large_is_refused(bench: Bench) -> None:
    bench.enqueue((0,), (1,))
    bench.broker.script.extend([None, TOO_LARGE])
    bench.run()
    refusal = bench.appender.refusals.get(KEY)
    assert refusal is not None
    assert "max.message.bytes" in refusal.problem
    assert bench.broker.log[KEY] == [0]


def test_a_partition_without_a_leader_waits_and_then_is_given_up(bench: Bench) -> None:
    bench.leaders.leader = Leader(-1, -1)
    bench.enqueue((0,))
    bench.run()
    assert bench.appender.refusals.get(KEY) == PartitionRefusal("not accepted for 75 s: no leader", passing=True)
    assert bench.appender.leaders_stale
    assert RETRY_SECONDS < bench.clock.now - 1_000 < RETRY_SECONDS + 5


def test_trouble_that_passes_does_not_count_against_the_next_one(bench: Bench) -> None:
    for number in range(5):
        bench.enqueue((number,))
        bench.broker.script.extend([NOT_LEADER])
        bench.run()
        bench.clock.now += RETRY_SECONDS
    assert bench.broker.log[KEY] == list(range(5))
