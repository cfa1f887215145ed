"""A broker that answers the appender by script, and what its log holds then.

It appends by Kafka's own rule (a batch is appended when its sequence is the next one) unless the script says otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar
from uuid import UUID

import pytest
from kafka.future import Future

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.clusters.logs.producing import BatchesAnswer, PartitionAnswer
from ferry.clusters.net.connections import RequestLost, RequestNotSent
from ferry.clusters.net.leaders import Leader
from ferry.copying import appender as module
from ferry.copying.appender import Accepted, Appender, RefusedRecord
from ferry.errors import NotAuthorized

pytestmark = pytest.mark.unit


KEY, OTHER = ("A.t", 0), ("A.t", 1)
NOT_LEADER, TOO_LARGE, FENCED, OUT_OF_ORDER, INVALID_TIMESTAMP, UNEXPECTED = 6, 10, 47, 45, 32, 46


@dataclass(frozen=True)
class FakeBatch:
    """`names` stand for records; the encoded form carries the sequence, so that the broker can check it."""

    names: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def size(self) -> int:
        return 100 * len(self.names)

    @property
    def own(self) -> int:
        return self.size + 61

    def encode(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> Any:
        return SimpleNamespace(batch=self, sequence=base_sequence, identity=(producer_id, epoch), transactional=transactional)


def halve(batch: FakeBatch) -> tuple[FakeBatch, FakeBatch]:
    middle = batch.count // 2
    if not middle:
        raise ValueError("it is one record")
    return FakeBatch(batch.names[:middle]), FakeBatch(batch.names[middle:])


class Clock:
    """Time that passes only when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Broker:
    """A leader with Kafka's sequence check. `script` gives the next answers; None is the honest one."""

    alias: ClassVar[str] = "B"
    script: deque[int | Exception | None] = field(default_factory=deque)
    log: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    expected: dict[tuple[str, int], int] = field(default_factory=dict)
    requests: deque[tuple[Any, Future]] = field(default_factory=deque)
    most_in_flight: int = 0
    pauses: deque[int] = field(default_factory=deque)
    paused: bool = False
    # Of every request, where it went.
    nodes: list[int] = field(default_factory=list)
    pausing: set[int] = field(default_factory=set)
    request_limit: int | None = None

    def throttled(self, node: int) -> bool:
        return self.paused or node in self.pausing

    def denied(self, doing: str, right: str) -> NotAuthorized:
        return NotAuthorized(f"{doing}: grant {right}")

    def granting(self, right: str) -> str:
        return f"grant {right}"

    def submit(self, request: Any, node: int) -> Future:
        future = Future()
        self.nodes.append(node)
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
        future.success(BatchesAnswer(parts, self.pauses.popleft() if self.pauses else 0))

    def _append(self, key: tuple[str, int], batch: Any) -> PartitionAnswer:
        code = self.script.popleft() if self.script else None
        log = self.log.setdefault(key, [])
        if code is None:
            code = 0 if batch.sequence == self.expected.get(key, 0) else OUT_OF_ORDER
        base = len(log)
        if code == 0:
            log += batch.batch.names
            self.expected[key] = batch.sequence + batch.batch.count
        return PartitionAnswer(*key, code, base if code == 0 else -1, None)


class FakeLeaders:
    """Every partition is led by broker 1, unless it is said to be elsewhere."""

    def __init__(self) -> None:
        self.leader = Leader(1, 0)
        self.elsewhere: dict[tuple[str, int], Leader] = {}
        self.names: dict[UUID, str] = {}
        self.refusal = 0

    def refused(self, _: str) -> int:
        return self.refusal

    def of(self, topic: str, partition: int) -> Leader:
        return self.elsewhere.get((topic, partition), self.leader)

    def topic_id(self, *_: object) -> UUID:
        return UUID(int=7)

    def name_of(self, _: str | None, topic_id: UUID) -> str:
        return self.names[topic_id]


class Bench:
    """An appender, its broker, and what it reported."""

    def __init__(
        self,
        clock: Clock,
        *,
        skips: bool = False,
        transactional_id: str | None = "ferry-x-0",
        transactions_v2: bool = True,
        request_limit: int | None = None,
    ) -> None:
        self.clock = clock
        self.broker, self.leaders = Broker(request_limit=request_limit), FakeLeaders()
        self.woken = 0
        wakeup: Any = SimpleNamespace(fire=self._wake)
        connection: Any = self.broker
        leaders: Any = self.leaders
        more: dict[str, Any] = {"skips": True} if skips else {}
        self.appender = Appender(
            connection, leaders, wakeup, transactional_id=transactional_id, transactions_v2=transactions_v2, halve=halve, **more
        )
        self.appender.adopt(ProducerIdentity(7, 0))
        self.accepted: list[Accepted] = []
        self.refused: list[RefusedRecord] = []
        self.names: list[int] = []

    def _wake(self) -> None:
        self.woken += 1

    def enqueue(self, *batches: tuple[int, ...], key: tuple[str, int] = KEY) -> None:
        for names in batches:
            self.appender.enqueue(key, FakeBatch(names))

    def settle(self) -> None:
        for answered in self.appender.take_answers():
            if isinstance(answered, Accepted):
                self.accepted.append(answered)
            else:
                self.refused.append(answered)
            self.names += answered.batch.names

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
        for key, batch, base in self.accepted:
            assert len(seen.setdefault(key, [])) == base
            seen[key] += batch.names
        return (
            seen == {key: names for key, names in self.broker.log.items() if names}
            and self.appender.waiting_bytes == self.appender.own_bytes == 0
        )


def new_bench(replace: Callable[..., None], *, skips: bool = False, **producer: Any) -> Bench:
    clock = Clock()
    replace(module, "clock", clock)
    return Bench(clock, skips=skips, **producer)


class Honest:
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
