"""The appender against scripted answers: order, sequences, refusals, halving, and what leaves the outcome open.

The broker here keeps a log per partition by Kafka's own rule (a batch is appended when its sequence is the next one) unless the script
says otherwise, so a test compares what the log holds with what was enqueued.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.future import Future

from ferry.clusters.connections import RequestLost, RequestNotSent
from ferry.clusters.coordination import Fenced, OutcomeUnknown, ProducerIdentity
from ferry.clusters.leaders import Leader
from ferry.clusters.produce_frames import BatchesAnswer, PartitionAnswer
from ferry.copying import appender as module
from ferry.copying.appender import REQUESTS_IN_FLIGHT, RETRY_SECONDS, Accepted, Appender, Refused
from ferry.wire.split import Indivisible

pytestmark = pytest.mark.unit

KEY, OTHER = ("A.t", 0), ("A.t", 1)
NOT_LEADER, TOO_LARGE, FENCED, OUT_OF_ORDER, INVALID_TIMESTAMP, UNEXPECTED = 6, 10, 47, 45, 32, 46


@dataclass(frozen=True)
class FakeUnit:
    """`names` stand for records; the encoded form carries the sequence, so that the broker can check it."""

    names: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def size(self) -> int:
        return 100 * len(self.names)

    def encode(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> Any:
        return SimpleNamespace(unit=self, sequence=base_sequence, identity=(producer_id, epoch), transactional=transactional)


def halve(unit: FakeUnit) -> tuple[FakeUnit, FakeUnit]:
    middle = unit.count // 2
    return FakeUnit(unit.names[:middle]), FakeUnit(unit.names[middle:])


class Clock:
    """Time that passes only when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Broker:
    """A leader with Kafka's sequence check. `script` gives the next answers; None is the honest one."""

    script: deque[int | Exception | None] = field(default_factory=deque)
    log: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    expected: dict[tuple[str, int], int] = field(default_factory=dict)
    requests: deque[tuple[Any, Future]] = field(default_factory=deque)
    most_in_flight: int = 0

    def submit(self, request: Any, *_: object) -> Future:
        future = Future()
        self.requests.append((request, future))
        self.most_in_flight = max(self.most_in_flight, len(self.requests))
        return future

    def classified(self, problem: BaseException) -> Exception:
        return RequestNotSent(str(problem)) if "not sent" in str(problem) else RequestLost(str(problem))

    def answer(self) -> None:
        """Answer the oldest request."""
        request, future = self.requests.popleft()
        if self.script and isinstance(self.script[0], Exception):
            future.failure(self.script.popleft())
            return
        parts = [self._append((name, index), batch) for name, _, batches in request.batches for index, batch in batches]
        future.success(BatchesAnswer(parts, 0))

    def _append(self, key: tuple[str, int], batch: Any) -> PartitionAnswer:
        code = self.script.popleft() if self.script else None
        log = self.log.setdefault(key, [])
        if code is None:
            code = 0 if batch.sequence == self.expected.get(key, 0) else OUT_OF_ORDER
        base = len(log)
        if code == 0:
            log += batch.unit.names
            self.expected[key] = batch.sequence + batch.unit.count
        return PartitionAnswer(*key, code, base if code == 0 else -1, None)


class FakeLeaders:
    """Every partition is led by broker 1."""

    def __init__(self) -> None:
        self.leader = Leader(1, 0)

    def of(self, *_: object) -> Leader:
        return self.leader

    def topic_id(self, *_: object) -> None:
        return None

    def name_of(self, topic: str, *_: object) -> str:
        return topic


class Bench:
    """An appender, its broker, and what it reported."""

    def __init__(self, clock: Clock, *, skips: bool = False) -> None:
        self.clock = clock
        self.broker, self.leaders = Broker(), FakeLeaders()
        wakeup: Any = SimpleNamespace(fire=lambda: None)
        connection: Any = self.broker
        leaders: Any = self.leaders
        self.appender = Appender(connection, leaders, wakeup, transactional_id="ferry-x-0", transactions_v2=True, halve=halve, skips=skips)
        self.appender.adopt(ProducerIdentity(7, 0))
        self.accepted: list[Accepted] = []
        self.refused: list[Refused] = []
        self.names: list[int] = []

    def enqueue(self, *units: tuple[int, ...], key: tuple[str, int] = KEY) -> None:
        for names in units:
            self.appender.enqueue(key, FakeUnit(names))

    def settle(self) -> None:
        for answered in self.appender.settle():
            if isinstance(answered, Accepted):
                self.accepted.append(answered)
            else:
                self.refused.append(answered)
            self.names += answered.unit.names

    def run(self) -> None:
        """Until nothing waits any more."""
        for _ in range(10_000):
            if not (self.appender.busy(KEY) or self.appender.busy(OTHER)):
                return
            self.appender.pump()
            if self.broker.requests:
                self.broker.answer()
            self.settle()
            self.clock.now += 0.1
        raise AssertionError("the appender makes no headway")

    def consistent(self) -> bool:
        """What was reported accepted is what the logs hold, at those offsets, in order."""
        seen: dict[tuple[str, int], list[int]] = {}
        for key, unit, base in self.accepted:
            assert len(seen.setdefault(key, [])) == base
            seen[key] += unit.names
        return seen == {key: names for key, names in self.broker.log.items() if names} and self.appender.waiting_bytes == 0


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return new_bench(monkeypatch.setattr)


def new_bench(replace: Callable[..., None], *, skips: bool = False) -> Bench:
    clock = Clock()
    replace(module, "time", clock)
    return Bench(clock, skips=skips)


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
    with pytest.raises(OutcomeUnknown, match="no answer for this partition"):
        bench.settle()


@pytest.mark.parametrize("code", [47, 49, 90])
def test_a_fenced_pair_ends_everything(bench: Bench, code: int) -> None:
    bench.enqueue((0,))
    bench.broker.script.append(code)
    with pytest.raises(Fenced):
        bench.run()


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
    refusal = bench.appender.refusal(KEY)
    assert refusal is not None
    assert (refusal.passing, "INVALID_TIMESTAMP" in refusal.problem) == (False, True)
    assert bench.appender.refusal(OTHER) is None
    assert bench.consistent()


def test_a_batch_that_is_too_large_is_halved_until_it_fits(bench: Bench) -> None:
    bench.enqueue((0,), (1, 2, 3, 4), (5, 6))
    bench.broker.script.extend([None, TOO_LARGE, None, TOO_LARGE, None, None])
    bench.run()
    assert bench.broker.log[KEY] == list(range(7))
    assert [unit.names for _, unit, _ in bench.accepted] == [(0,), (1,), (2,), (3, 4), (5, 6)]
    assert bench.consistent()


def test_a_batch_that_cannot_be_divided_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(_: FakeUnit) -> tuple[FakeUnit, FakeUnit]:
        raise ValueError("no such codec")

    monkeypatch.setattr(bench.appender, "_halve", damaged)
    bench.enqueue((0,), (1, 2), (3,))
    bench.broker.script.extend([None, TOO_LARGE, None])
    bench.run()
    refusal = bench.appender.refusal(KEY)
    assert refusal is not None
    assert "no such codec" in refusal.problem
    assert bench.broker.log[KEY] == [0]


def test_one_record_that_is_too_large_is_refused(bench: Bench) -> None:
    bench.enqueue((0,), (1,))
    bench.broker.script.extend([None, TOO_LARGE])
    bench.run()
    refusal = bench.appender.refusal(KEY)
    assert refusal is not None
    assert "max.message.bytes" in refusal.problem
    assert bench.broker.log[KEY] == [0]


def test_a_partition_without_a_leader_waits_and_then_is_given_up(bench: Bench) -> None:
    bench.leaders.leader = Leader(-1, -1)
    bench.enqueue((0,))
    bench.run()
    refusal = bench.appender.refusal(KEY)
    assert refusal is not None
    assert refusal.passing
    assert "no leader" in refusal.problem
    assert RETRY_SECONDS < bench.clock.now - 1_000 < RETRY_SECONDS + 5


def test_trouble_that_passes_does_not_count_against_the_next_one(bench: Bench) -> None:
    for number in range(5):
        bench.enqueue((number,))
        bench.broker.script.extend([NOT_LEADER])
        bench.run()
        bench.clock.now += RETRY_SECONDS
    assert bench.broker.log[KEY] == list(range(5))


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
        refused_behind = _Honest(bench.broker, data.draw(st.lists(answers, max_size=30)))
        bench.broker._append = refused_behind  # type: ignore[method-assign]
        bench.run()
        assert bench.broker.log == wanted
        assert bench.consistent()


class _Honest:
    """Passing errors, but batches behind a refused one meet the sequence check, as at a real broker."""

    def __init__(self, broker: Broker, answers: list[int | Exception | None]) -> None:
        self._append = broker._append
        self._answers = deque(answer for answer in answers if not isinstance(answer, Exception))
        broker.script.extend(answer for answer in answers if isinstance(answer, Exception))

    def __call__(self, key: tuple[str, int], batch: Any) -> Any:
        code = self._answers.popleft() if self._answers else None
        if code is not None:
            return PartitionAnswer(*key, code, -1, None)
        return self._append(key, batch)


class _Choosy:
    """Passing errors, and refusals of whatever batch holds a bad record, before or after the sequence check."""

    def __init__(self, broker: Broker, bad: set[int], code: int, answers: list[int | None], early: bool) -> None:
        self._append, self._broker = broker._append, broker
        self._bad, self._code, self._answers, self._early = bad, code, deque(answers), early

    def __call__(self, key: tuple[str, int], batch: Any) -> Any:
        passing = self._answers.popleft() if self._answers else None
        if passing is not None:
            return PartitionAnswer(*key, passing, -1, None)
        in_order = batch.sequence == self._broker.expected.get(key, 0)
        if self._bad.intersection(batch.unit.names) and (in_order or self._early):
            return PartitionAnswer(*key, self._code, -1, None)
        return self._append(key, batch)


@given(st.data(), st.sampled_from([TOO_LARGE, INVALID_TIMESTAMP]), st.booleans())
def test_refused_records_alone_are_left_out_in_order(data: st.DataObject, code: int, early: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        bench = new_bench(patch.setattr, skips=True)
        sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=15))
        total = sum(sizes)
        bad = data.draw(st.sets(st.integers(0, total - 1)))
        names = iter(range(total))
        bench.enqueue(*[tuple(next(names) for _ in range(size)) for size in sizes])
        answers = data.draw(st.lists(st.sampled_from([None, None, None, NOT_LEADER]), max_size=20))
        bench.broker._append = _Choosy(bench.broker, bad, code, answers, early)  # type: ignore[method-assign]
        bench.run()
        assert bench.names == list(range(total))
        assert bench.broker.log.get(KEY, []) == [name for name in range(total) if name not in bad]
        assert [refused.unit.names for refused in bench.refused] == [(name,) for name in sorted(bad)]
        assert bench.appender.refusal(KEY) is None
        assert bench.consistent()


@pytest.mark.parametrize("code", [29, 17, 53])
def test_what_no_record_gets_past_stops_the_partition_all_the_same(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    bench = new_bench(monkeypatch.setattr, skips=True)
    bench.enqueue((0,), (1, 2), (3,))
    bench.broker.script.extend([None, code])
    bench.run()
    assert bench.broker.log[KEY] == [0]
    assert bench.appender.refusal(KEY) is not None
    assert bench.refused == []


def test_outputs_of_one_record_that_are_too_large_together_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(unit: FakeUnit) -> tuple[FakeUnit, FakeUnit]:
        raise Indivisible("made of one record")

    for skips in (True, False):
        bench = new_bench(monkeypatch.setattr, skips=skips)
        monkeypatch.setattr(bench.appender, "_halve", whole)
        bench.enqueue((0,), (1, 2), (3,))
        bench.broker.script.extend([None, TOO_LARGE])
        bench.run()
        refusal = bench.appender.refusal(KEY)
        assert bench.broker.log[KEY] == ([0, 3] if skips else [0])
        assert [refused.unit.names for refused in bench.refused] == ([(1, 2)] if skips else [])
        assert refusal is None if skips else refusal is not None and "made of one record" in refusal.problem
