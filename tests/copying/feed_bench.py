"""A source that answers a feed by script: brokers, leaders and a clock, as far as a feed asks them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

from kafka.future import Future
from kafka.record.default_records import DefaultRecordBatchBuilder

from ferry.clusters.logs.leader_epochs import Divergence, ReadTo
from ferry.clusters.net.connections import RequestLost, RequestNotSent
from ferry.clusters.net.frames import Meter
from ferry.clusters.net.leaders import Leader
from ferry.copying.buffer_limits import BufferLimits, RateLimiter
from ferry.copying.cursor import PartitionCursor
from ferry.copying.cursor_groups import CursorGroups
from ferry.copying.following import Following
from ferry.copying.lane_messages import PartitionTask, Segment
from ferry.copying.source_feed import SourceFeed
from ferry.errors import NotAuthorized
from ferry.ledger.receipts import ReceiptKind

TOPIC_ID = UUID(int=1)
LIMITS = BufferLimits(fetch=1_000, partition_fetch=500, in_flight=1_000, waiting=1_000, held=10_000, opened=5_000)


def batch(*offsets: int, epoch: int = 4, producer: int = -1) -> bytes:
    """A batch of small records at consecutive offsets; with a producer it is part of a transaction."""
    builder = DefaultRecordBatchBuilder(2, 0, producer >= 0, producer, 0, 0, 1 << 20)
    for index, _ in enumerate(offsets):
        builder.append(index, 1_000, b"k", b"v", [])
    built = bytearray(builder.build())
    built[0:8], built[12:16] = offsets[0].to_bytes(8, "big"), epoch.to_bytes(4, "big")
    return bytes(built)


class Source:
    """Brokers, leaders and clock in one."""

    alias = "A"

    def __init__(self) -> None:
        self.now = 1_000.0
        self.meter = Meter()
        self.requests: list[tuple[Any, int, Future]] = []
        self.leaders: dict[int, Leader] = {}
        self.ids: dict[str, UUID | None] = {"t": TOPIC_ID}
        self.gone: set[str] = set()
        self.refusal = 0
        self.throttled_nodes: set[int] = set()
        self.bounds: tuple[int, int] | Exception = (0, 100)
        self.divergence: Divergence | None = None
        self.judged: list[ReadTo] = []
        self.looks = self.most_looks = 0
        self.refreshed, self.refusing, self.woken, self.slept = 0, False, 0, list[float]()
        self.rested, self.age = True, 0.0
        self.problem: Exception = RequestLost("connection reset")

    def monotonic(self) -> float:
        return self.now

    def of(self, topic: str, partition: int) -> Leader:
        assert topic == "t"
        return self.leaders.get(partition, Leader(1, 7))

    def refused(self, _: str) -> int:
        return self.refusal

    def topic_id(self, topic: str) -> UUID | None:
        return self.ids.get(topic)

    def is_gone(self, topic: str) -> bool:
        return topic in self.gone

    def name_of(self, *_: object) -> str:
        return "t"

    async def refresh(self) -> None:
        self.refreshed += 1
        if self.refusing:
            raise RequestNotSent("no broker answers")

    def submit(self, request: Any, node: int) -> Future:
        future = Future()
        self.requests.append((request, node, future))
        return future

    def throttled(self, node: int) -> bool:
        return node in self.throttled_nodes

    def all_throttled(self) -> bool:
        return bool(self.throttled_nodes)

    def classified(self, problem: BaseException) -> Exception:
        assert isinstance(problem, OSError)
        return self.problem

    def denied(self, doing: str, right: str) -> NotAuthorized:
        return NotAuthorized(f"{doing}: grant {right}")

    def granting(self, right: str) -> str:
        return f"grant {right}"

    def fire(self) -> None:
        self.woken += 1

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def start(self, coroutine: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> asyncio.Task[None] | None:
        """Outside of asyncio.run: to its end."""
        try:
            return asyncio.get_running_loop().create_task(coroutine(*arguments))
        except RuntimeError:
            asyncio.run(coroutine(*arguments))
            return None

    async def log_bounds(self, *where: object) -> tuple[int, int]:
        assert where[:3] == (self, self, "t")
        self.looks += 1
        self.most_looks = max(self.most_looks, self.looks)
        await asyncio.sleep(0)
        self.looks -= 1
        if isinstance(self.bounds, Exception):
            raise self.bounds
        return self.bounds

    async def divergence_of(self, *asked: Any) -> Divergence | None:
        assert asked[:2] == (self, self)
        self.judged.append(asked[3])
        return self.divergence


class Bench:
    """A feed of some partitions of topic t, and its source. `beat`: as Following.commit_seconds."""

    def __init__(
        self,
        *tasks: PartitionTask,
        limits: BufferLimits = LIMITS,
        rate: float | None = None,
        handle: Any = None,
        guard: Any = None,
        beat: float = 0.0,
    ) -> None:
        self.source = Source()
        self.cursors = [PartitionCursor(task) for task in tasks]
        source: Any = self.source
        rate_limiter = RateLimiter(rate, self.source.now)
        following = Following(math.inf if any(task.follows for task in tasks) else None, beat)
        self.feed = SourceFeed(source, source, source, source, CursorGroups(self.cursors), handle, limits, rate_limiter, following, guard)

    def asked(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """Of every request: the broker, and (partition, offset)."""
        return [(node, [(part.partition, part.fetch_offset) for part in parts_of(request)]) for request, node, _ in self.source.requests]

    def answer(
        self, *, partition: int = 0, records: bytes = b"", error: int = 0, lso: int = 100, diverged: int | None = None, aborted: int = -1
    ) -> Any:
        """Answer the oldest request for one partition; the batches that come of it."""
        return self._answer([_part(partition, records, error, lso, diverged, aborted)])

    def answer_all(self, records: dict[int, bytes], errors: Mapping[int, int] = MappingProxyType({}), lso: int = 100) -> Any:
        """Answer the oldest request with these records, or error codes, of each partition; the batches that come of it."""
        refused = [_part(partition, b"", code) for partition, code in errors.items()]
        return self._answer([*refused, *(_part(partition, data, lso=lso) for partition, data in records.items())])

    def _answer(self, parts: list[SimpleNamespace]) -> Any:
        _, _, future = self.source.requests.pop(0)
        future.success(SimpleNamespace(error_code=0, responses=[SimpleNamespace(topic="t", partitions=parts)]))
        return self.feed.arrivals()

    def mend(self, *idle: PartitionCursor) -> None:
        asyncio.run(self.feed.mend(idle))


def _part(
    partition: int, records: bytes, error: int = 0, lso: int = 100, diverged: int | None = None, aborted: int = -1
) -> SimpleNamespace:
    return SimpleNamespace(
        partition_index=partition,
        error_code=error,
        records=records,
        aborted_transactions=[SimpleNamespace(producer_id=aborted, first_offset=0)] if aborted >= 0 else [],
        last_stable_offset=lso,
        high_watermark=lso,
        diverging_epoch=None if diverged is None else SimpleNamespace(epoch=3, end_offset=diverged),
    )


def parts_of(request: Any) -> list[Any]:
    return [part for topic in request.topics for part in topic.partitions]


def task(partition: int = 0, *, start: int = 0, end: int = 100, kind: ReceiptKind = ReceiptKind.COPIED) -> PartitionTask:
    segments = (Segment(kind, start, end),)
    return PartitionTask("t", partition, TOPIC_ID, "A.t", UUID(int=2), start, segments, last_epoch=3, batch_limit=900)
