"""Where logs end for several leader epochs: one request asks for one epoch of a partition, and none waits for another."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.logs.leader_epochs import _epoch_ends
from ferry.clusters.net.leaders import Leader
from ferry.clusters.net.partitions import TopicPartition
from ferry.wire.ranges import NO_END

pytestmark = pytest.mark.unit

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
# By partition, of each epoch that the log has: where it ends.
CACHES = {0: {1: 10, 4: 30}, 1: {4: 7}}


class Broker:
    """Leads every partition; `silent`: partitions about which it cannot answer now."""

    def __init__(self, *silent: int) -> None:
        self.loop = SimpleNamespace(start=lambda ask, *arguments: asyncio.ensure_future(ask(*arguments)))
        self.silent, self.under_way, self.most = silent, 0, 0

    def of(self, *_: object) -> Leader:
        return Leader(1, 9)

    async def send(self, request: Any, node: int) -> Any:
        assert node == 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        [topic] = request.topics
        assert len({part.partition for part in topic.partitions}) == len(topic.partitions)
        parts = [self._answer(part.partition, part.leader_epoch) for part in topic.partitions]
        return SimpleNamespace(topics=[SimpleNamespace(topic="t", partitions=parts)])

    def _answer(self, partition: int, asked: int) -> Any:
        cache = CACHES[partition]
        known = -1 if asked > max(cache) else max((epoch for epoch in cache if epoch <= asked), default=asked)
        end = -1 if known < 0 else cache.get(known, 0)
        return SimpleNamespace(partition=partition, error_code=6 * (partition in self.silent), leader_epoch=known, end_offset=end)


def ends(broker: Any) -> dict[TopicPartition, dict[int, int]]:
    return asyncio.run(_epoch_ends(broker, broker, {FIRST: {1, 3, 4, 5}, SECOND: {4}}))


def test_epochs_are_asked_for_side_by_side() -> None:
    broker = Broker()
    assert ends(broker) == {FIRST: {1: 10, 3: 0, 4: 30, 5: NO_END}, SECOND: {4: 7}}
    assert broker.most == 4


def test_a_partition_without_an_answer_is_left_out() -> None:
    assert ends(Broker(0)) == {SECOND: {4: 7}}
