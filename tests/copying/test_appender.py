"""The appender against scripted answers: order, sequences, refusals, halving, and what leaves the outcome open.

The broker here keeps a log per partition by Kafka's own rule (a batch is appended when its sequence is the next one) unless the script
says otherwise, so a test compares what the log holds with what was enqueued.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.copying.appender_bench import Bench, Honest, new_bench

from ferry.clusters.groups.coordination import Fenced, OutcomeUnknown, ProducerIdentity
from ferry.clusters.logs.producing import NEWEST, V1_PRODUCE, BatchesAnswer
from ferry.clusters.net.error_codes import named
from ferry.clusters.net.leaders import Leader
from ferry.copying.appender import HEADER_BYTES, PARTITION_BYTES, REQUEST_BYTES, REQUESTS_IN_FLIGHT, RETRY_PAUSE_SECONDS, STUCK_SECONDS

pytestmark = pytest.mark.unit


KEY, OTHER = ("A.t", 0), ("A.t", 1)
NOT_LEADER, TOO_LARGE, OUT_OF_ORDER, INVALID_TIMESTAMP, UNEXPECTED = 6, 10, 45, 32, 46


def test_the_first_batch_travels_alone_then_several_fly(bench: Bench) -> None:
    bench.enqueue(*[(number,) for number in range(10)])
    bench.appender.pump()
    bench.appender.pump()
    assert len(bench.broker.requests) == 1
    bench.broker.answer()
    bench.settle()
    bench.appender.pump()
    assert len(bench.broker.requests) == REQUESTS_IN_FLIGHT
    bench.run()
    assert bench.broker.log[KEY] == list(range(10))
    assert bench.broker.most_in_flight == REQUESTS_IN_FLIGHT
    assert bench.consistent()


def test_a_later_batch_flies_behind_one_that_is_under_way(bench: Bench) -> None:
    bench.enqueue((0,))
    bench.run()
    for number in (1, 2):
        bench.enqueue((number,))
        assert bench.appender.pump() == 100
    assert len(bench.broker.requests) == 2


def test_where_not_all_may_go_the_one_that_was_sent_last_waits(bench: Bench) -> None:
    sent: list[tuple[str, int]] = []

    def one_of(turn: int) -> Callable[[tuple[str, int]], bool]:
        def admit(key: tuple[str, int]) -> bool:
            if len(sent) == turn:
                sent.append(key)
            return sent[turn:] == [key]

        return admit

    bench.enqueue(*[(mark,) for mark in range(4)])
    bench.enqueue(*[(10 + mark,) for mark in range(4)], key=OTHER)
    for turn in range(4):
        bench.appender.pump(one_of(turn))
        bench.broker.answer()
        bench.settle()
    assert sent == [KEY, OTHER, KEY, OTHER]


def test_answers_may_name_the_topic_by_its_id(bench: Bench) -> None:
    append = bench.broker._append
    bench.broker._append = lambda key, batch: append(key, batch)._replace(topic=UUID(int=5))  # type: ignore[method-assign]
    bench.leaders.names[UUID(int=5)] = "A.t"
    bench.enqueue((0,), (1,))
    bench.run()
    assert bench.broker.log[KEY] == [0, 1]


def test_a_new_epoch_sends_the_first_batch_alone_again_from_sequence_zero(bench: Bench) -> None:
    bench.enqueue((0,), (1,), (2,))
    bench.run()
    bench.broker.expected.clear()
    bench.appender.adopt(ProducerIdentity(7, 1))
    bench.enqueue((3,), (4,), (5,))
    bench.appender.pump()
    assert len(bench.broker.requests) == 1
    bench.run()
    assert bench.broker.log[KEY] == [0, 1, 2, 3, 4, 5]


def test_the_same_pair_goes_on_with_its_sequences(bench: Bench) -> None:
    bench.enqueue((0, 1))
    bench.run()
    bench.appender.adopt(ProducerIdentity(7, 0))
    bench.enqueue((2,), (3,))
    bench.run()
    assert bench.broker.log[KEY] == [0, 1, 2, 3]


def test_after_a_retriable_answer_all_go_again_in_order(bench: Bench) -> None:
    bench.enqueue((0,))
    bench.run()
    bench.enqueue((1, 2), (3,), (4, 5))
    bench.broker.script.extend([NOT_LEADER, None, None])
    bench.appender.pump()
    assert len(bench.broker.requests) == 3
    bench.broker.answer()
    bench.settle()
    bench.clock.now += 1
    bench.appender.pump()
    assert len(bench.broker.requests) == 2  # nothing more leaves before all are answered
    bench.run()
    assert bench.broker.log[KEY] == [0, 1, 2, 3, 4, 5]
    assert bench.appender.leaders_stale
    assert bench.consistent()


def test_nothing_goes_behind_a_batch_that_was_not_accepted_until_all_are_answered(bench: Bench) -> None:
    bench.enqueue((0,))
    bench.run()
    bench.enqueue(*[(number,) for number in range(1, 7)])
    assert (bench.appender.leaders_stale, bench.appender.pump()) == (False, 400)
    bench.broker.script.append(NOT_LEADER)
    bench.broker.answer()
    bench.settle()
    bench.clock.now += 1
    assert (bench.appender.leaders_stale, bench.appender.sendable(), bench.appender.pump()) == (True, [], 0)
    for _ in range(3):
        bench.broker.answer()
    bench.settle()
    assert bench.appender.sendable() == [KEY]
    bench.run()
    assert bench.broker.log[KEY] == list(range(7))


def test_a_pause_is_made_before_a_batch_goes_again(bench: Bench) -> None:
    bench.enqueue((0,))
    bench.broker.script.append(NOT_LEADER)
    bench.appender.pump()
    bench.broker.answer()
    bench.settle()
    assert (bench.appender.sendable(), bench.appender.pump()) == ([], 0)
    bench.clock.now += RETRY_PAUSE_SECONDS
    assert (bench.appender.sendable(), bench.appender.pump()) == ([KEY], 100)


def test_what_waits_is_to_be_sent_soon_unless_its_partition_accepts_nothing(bench: Bench) -> None:
    bench.enqueue((0,))
    assert bench.appender.sending
    bench.broker.script.append(NOT_LEADER)
    bench.appender.pump()
    assert not bench.appender.sending, "in flight"
    bench.broker.answer()
    bench.settle()
    bench.clock.now += STUCK_SECONDS
    assert bench.appender.sending
    bench.clock.now += 0.01
    assert not bench.appender.sending
    bench.enqueue((100,), key=OTHER)
    assert bench.appender.sending, "another partition"


def test_only_the_partitions_that_are_asked_for_send(bench: Bench) -> None:
    bench.enqueue((0,), (1,))
    bench.enqueue((0,), (1,), key=OTHER)
    assert bench.appender.sendable() == [KEY, OTHER]
    assert bench.appender.pump(lambda key: key == OTHER) == 100
    assert bench.appender.sendable() == [KEY], "the first batch of a partition travels alone"
    assert (bench.appender.pump(lambda key: key == OTHER), bench.appender.unanswered) == (0, 1)
    bench.broker.answer()
    assert (bench.appender.unanswered, bench.woken) == (1, 1), "an answer counts until it is handled"
    bench.settle()
    assert bench.appender.unanswered == 0
    bench.run()
    assert bench.broker.log == {KEY: [0, 1], OTHER: [0, 1]}


def test_a_partition_that_moves_waits_for_the_answers_of_its_old_leader(bench: Bench) -> None:
    bench.leaders.leader = Leader(0, 0)
    bench.leaders.elsewhere[OTHER] = Leader(3, 0)
    bench.enqueue((0,))
    bench.enqueue((0,), key=OTHER)
    bench.run()
    assert sorted(bench.broker.nodes) == [0, 3]
    bench.enqueue((1,))
    bench.appender.pump()
    bench.leaders.leader = Leader(2, 1)
    bench.enqueue((2,))
    assert bench.appender.pump() == 0
    bench.broker.answer()
    bench.settle()
    assert bench.appender.pump() == 100
    assert bench.broker.nodes[2:] == [0, 2]
    bench.run()
    assert bench.broker.log[KEY] == [0, 1, 2]


def test_a_broker_that_pauses_holds_up_no_other(bench: Bench) -> None:
    bench.leaders.elsewhere[OTHER] = Leader(2, 0)
    bench.broker.pausing = {1}
    bench.enqueue((0,))
    bench.enqueue((0,), key=OTHER)
    assert (bench.appender.pump(), bench.broker.nodes) == (100, [2])


def test_a_request_takes_one_batch_of_each_partition_in_turn_up_to_its_size(bench: Bench) -> None:
    bench.enqueue((0,))
    bench.enqueue((0,), key=OTHER)
    bench.run()
    large = REQUEST_BYTES // 100 + 1
    bench.enqueue((1,))
    bench.enqueue((1,), (2,), (3,), key=OTHER)
    assert bench.appender.pump() == 400
    assert [[index for _, _, batches in request.batches for index, _ in batches] for request, _ in bench.broker.requests] == [
        [0, 1],
        [1],
        [1],
    ]
    bench.run()
    for key in (KEY, OTHER):
        bench.enqueue(tuple(range(large)), key=key)
    assert bench.appender.pump() == 200 * large
    assert [[index for _, _, batches in request.batches for index, _ in batches] for request, _ in bench.broker.requests] == [[0], [1]]


@given(
    batches=st.lists(st.tuples(st.sampled_from([KEY, OTHER]), st.integers(1, 60)), max_size=30),
    room=st.integers(500, 5_000),
)
def test_no_request_is_larger_than_the_file_says(batches: list[tuple[tuple[str, int], int]], room: int) -> None:
    limit = HEADER_BYTES + PARTITION_BYTES + room
    with pytest.MonkeyPatch.context() as patch:
        bench = new_bench(patch.setattr, request_limit=limit)
        sizes: list[int] = []
        submit = bench.broker.submit

        def noted(request: Any, node: int) -> Any:
            sent = [batch for _, _, batches in request.batches for _, batch in batches]
            sizes.append(HEADER_BYTES + sum(PARTITION_BYTES + batch.batch.size for batch in sent))
            return submit(request, node)

        patch.setattr(bench.broker, "submit", noted)
        wanted: dict[tuple[str, int], list[int]] = {}
        for number, (key, records) in enumerate(batches):
            names = tuple(range(number * 100, number * 100 + records))
            wanted.setdefault(key, []).extend(names)
            bench.enqueue(names, key=key)
        bench.run()
    assert bench.broker.log == wanted
    assert bench.consistent()
    assert max(sizes, default=0) <= limit


def test_a_record_that_fits_into_no_request_stops_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = new_bench(monkeypatch.setattr, request_limit=HEADER_BYTES + PARTITION_BYTES + 99)
    bench.enqueue((0, 1))
    bench.enqueue((2,), key=OTHER)
    bench.run()
    assert bench.broker.log == {}
    assert bench.appender.refusals.keys() == {KEY, OTHER}
    assert "does not fit into max.request.size=1,399" in bench.appender.refusals[KEY].problem
    assert bench.appender.waiting_bytes == bench.appender.own_bytes == 0


@pytest.mark.parametrize(
    ("transactional_id", "v2", "newest"), [("ferry-x-0", True, NEWEST), ("ferry-x-0", False, V1_PRODUCE), (None, False, NEWEST)]
)
def test_batches_and_requests_say_what_transaction_they_belong_to(
    monkeypatch: pytest.MonkeyPatch, transactional_id: str | None, v2: bool, newest: int
) -> None:
    bench = new_bench(monkeypatch.setattr, transactional_id=transactional_id, transactions_v2=v2)
    bench.enqueue((0,))
    bench.appender.pump()
    ((request, _),) = bench.broker.requests
    ((_, _, ((_, batch),)),) = request.batches
    assert (batch.identity, batch.sequence, batch.transactional) == ((7, 0), 0, transactional_id is not None)
    assert (request.transactional_id, request._max_version) == (transactional_id, newest)


def test_what_was_not_sent_goes_again(bench: Bench) -> None:
    bench.enqueue((0,), (1,))
    bench.broker.script.extend([OSError("not sent")])
    bench.run()
    assert bench.broker.log[KEY] == [0, 1]


@pytest.mark.parametrize("early", [(2,), (0, 3), (1, 3), (0, 1, 2, 3)])
def test_requests_that_fail_before_the_answers_of_earlier_ones_change_no_order(bench: Bench, early: tuple[int, ...]) -> None:
    bench.enqueue((0,))
    bench.run()
    bench.enqueue((1,), (2,), (3,), (4,))
    bench.appender.pump()
    futures = [future for _, future in bench.broker.requests]
    for index in reversed(early):
        del bench.broker.requests[index]
    for index in early:
        futures[index].failure(OSError("not sent"))
    bench.settle()
    bench.run()
    assert bench.broker.log[KEY] == [0, 1, 2, 3, 4]
    assert bench.consistent()


def test_a_lost_answer_leaves_the_outcome_open(bench: Bench) -> None:
    bench.enqueue((0,), (1,))
    bench.broker.script.extend([OSError("connection reset")])
    with pytest.raises(OutcomeUnknown, match="connection reset"):
        bench.run()


def test_acceptance_behind_a_rejected_batch_leaves_the_outcome_open(bench: Bench) -> None:
    bench.enqueue((0,))
    bench.run()
    bench.enqueue((1,), (2,))
    bench.broker.script.extend([NOT_LEADER, 0])
    with pytest.raises(OutcomeUnknown) as raised:
        bench.run()
    assert raised.value.partition == KEY


@pytest.mark.parametrize("code", [UNEXPECTED, OUT_OF_ORDER, -1, 9_999])
def test_an_answer_that_is_not_understood_leaves_the_outcome_open(bench: Bench, code: int) -> None:
    bench.enqueue((0,))
    bench.broker.script.append(code)
    with pytest.raises(OutcomeUnknown):
        bench.run()


def test_an_answer_without_the_partition_leaves_the_outcome_open(bench: Bench) -> None:
    bench.enqueue((0,))
    bench.appender.pump()
    _, future = bench.broker.requests.popleft()
    future.success(BatchesAnswer([], 0))
    with pytest.raises(OutcomeUnknown, match=r"Produce to A\.t-0: no answer for this partition"):
        bench.settle()


@pytest.mark.parametrize("code", [47, 49, 90])
def test_a_fenced_pair_ends_everything(bench: Bench, code: int) -> None:
    bench.enqueue((0,))
    bench.broker.script.append(code)
    with pytest.raises(Fenced, match=rf"Produce to A\.t-0: {re.escape(named(code))}"):
        bench.run()


def test_a_lost_request_closes_no_window(bench: Bench) -> None:
    bench.enqueue((0,))
    bench.run()
    bench.enqueue(tuple(range(1, 1_001)))  # 100 kB
    bench.broker.script.append(OSError("not sent"))
    bench.appender.pump()
    bench.broker.answer()
    bench.settle()
    bench.clock.now += 1
    bench.enqueue(*[tuple(range(number, number + 1_000)) for number in range(1_001, 4_001, 1_000)])
    assert bench.appender.pump() == 400_000


@given(st.data())
def test_any_mix_of_passing_answers_keeps_order_and_loses_nothing(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        bench = new_bench(patch.setattr)
        sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=25))
        names = iter(range(1_000))
        for key in (KEY, OTHER):
            bench.enqueue(*[tuple(next(names) for _ in range(size)) for size in sizes], key=key)
        wanted = {key: [name for unit in bench.appender._queues[key].waiting for name in unit.names] for key in (KEY, OTHER)}  # type: ignore[attr-defined]
        answers = st.sampled_from([None, None, None, NOT_LEADER, OSError("not sent")])
        refused_behind = Honest(bench.broker, data.draw(st.lists(answers, max_size=30)))
        bench.broker._append = refused_behind  # type: ignore[method-assign]
        bench.run()
        assert bench.broker.log == wanted
        assert bench.consistent()
