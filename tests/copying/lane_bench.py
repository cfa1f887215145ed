"""A lane of many partitions that one scripted broker on each side leads: what one turn of its loop costs."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from kafka.future import Future
from tests.copying.feed_bench import TOPIC_ID, batch, task

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.clusters.logs.producing import BatchesAnswer, PartitionAnswer
from ferry.clusters.net.frames import Meter
from ferry.clusters.net.leaders import Leaders
from ferry.copying.buffer_limits import RateLimiter
from ferry.copying.lane import Lane
from ferry.copying.lane_messages import LaneTask


class Cluster:
    """Broker 1 leads every partition, and answers when the script says so."""

    alias = "X"

    def __init__(self) -> None:
        self.meter = Meter()
        self.requests: list[tuple[Any, Future]] = []

    def require_answers(self) -> None:
        """They come."""

    request_limit = None

    def throttled(self, _: int) -> bool:
        return False

    def submit(self, request: Any, _: int) -> Future:
        self.requests.append((request, Future()))
        return self.requests[-1][1]


class LaneBench:
    """Wakes a lane once for each act, and counts the function calls of the turn that follows it."""

    def __init__(self, partitions: int, *, follows: bool = False) -> None:
        self.source, self.target = Cluster(), Cluster()
        self.turns: list[int] = []
        flow = SimpleNamespace(
            memory_bytes=512 << 20,
            position_group="group",
            ledger_topic="ledger",
            state_topic="state",
            exactly_once=True,
            compression_type="producer",
            transaction_bytes=1 << 30,
            transaction_seconds=3_600,
            follow_commit_ms=3_600_000,
            handling=SimpleNamespace(abort_on_send_failure=True),
        )
        job: Any = SimpleNamespace(flow=flow, bytes_per_second=None, reroute={}, follow_until=time.time() + 3_600 if follows else None)
        self.stop: Any = SimpleNamespace(received=False)
        source: Any = self.source
        target: Any = self.target
        loop: Any = SimpleNamespace(start=_at_once)
        lane = LaneTask(0, "lane-0", ProducerIdentity(1, 0), tuple(replace(task(number), follows=follows) for number in range(partitions)))
        free = RateLimiter(None, 0.0)
        self.lane = Lane(loop, source, target, job, lane, None, reading=free, writing=free, stop_signals=self.stop, beside=1)
        _lead(self.lane._source_leaders, "t", TOPIC_ID, partitions)
        _lead(self.lane._target_leaders, "A.t", UUID(int=2), partitions)

    def run(self, *acts: Callable[[], object]) -> None:
        left, calls = list(acts), 0

        def count(_: object, event: str, __: object) -> None:
            nonlocal calls
            calls += event in {"call", "c_call"}

        async def wait(_: float) -> None:
            nonlocal calls
            sys.setprofile(None)
            self.turns.append(calls)
            if not left:
                self.stop.received = True
                return
            left.pop(0)()
            calls = 0
            sys.setprofile(count)

        wakeup: Any = SimpleNamespace(wait=wait, fire=lambda: None)
        self.lane._wakeup = self.lane._feed._wakeup = wakeup

        async def copy() -> None:
            await self.lane._fresh_appenders()
            await self.lane._copy()

        asyncio.run(copy())

    def fetched(self, *offsets: int) -> None:
        """The oldest fetch is answered with records of partition 0."""
        part = SimpleNamespace(
            partition_index=0,
            error_code=0,
            records=batch(*offsets),
            aborted_transactions=[],
            last_stable_offset=100,
            high_watermark=100,
            diverging_epoch=None,
        )
        _, future = self.source.requests.pop(0)
        future.success(SimpleNamespace(error_code=0, responses=[SimpleNamespace(topic="t", topic_id=TOPIC_ID, partitions=[part])]))

    def accepted(self) -> None:
        """The oldest batch of partition 0."""
        _, future = self.target.requests.pop(0)
        future.success(BatchesAnswer([PartitionAnswer("A.t", 0, 0, 7, None)], 0))


def _at_once(coroutine: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
    """Run what waits for nothing."""
    with suppress(StopIteration):
        coroutine(*arguments).send(None)


def _lead(leaders: Leaders, topic: str, topic_id: UUID, partitions: int) -> None:
    led = [SimpleNamespace(partition_index=number, leader_id=1, leader_epoch=7) for number in range(partitions)]
    leaders.take(SimpleNamespace(topics=[SimpleNamespace(name=topic, error_code=0, topic_id=topic_id, partitions=led)]))
    leaders._asked = math.inf  # they are not asked for again
