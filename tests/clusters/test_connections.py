"""Connections to a real broker that stops answering."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from kafka.protocol.metadata import MetadataRequest

from ferry.clusters.connections import ClusterConnection, EventLoop
from ferry.clusters.produce_frames import BatchesRequest
from ferry.config import ClientRole, Flow
from ferry.sandbox import SandboxCluster

pytestmark = pytest.mark.brokers


def test_a_connection_that_is_dropped_with_unsent_bytes_is_replaced(
    flow_factory: Callable[..., Flow], cluster_factory: Callable[..., SandboxCluster]
) -> None:
    target = cluster_factory()
    loop = EventLoop()
    connection = ClusterConnection(loop, flow_factory(target=target).target, ClientRole.PRODUCER)

    async def ask() -> int:
        answer = await connection.send(MetadataRequest(topics=[]), 1)
        return len(answer.brokers)

    async def pause_and_drop() -> int:
        assert await ask() == 1
        target.pause()
        try:
            batch = memoryview(bytes(4 << 20))
            waiting = [
                connection.submit(BatchesRequest([("none", uuid4(), [(0, (batch,))])], None, acks=-1, timeout_ms=1_000), 1)
                for _ in range(8)
            ]
            await loop.sleep(0.1)
            connection.disconnect()
            assert all(future.failed() for future in waiting)
        finally:
            target.resume()
        return await ask()

    try:
        loop.run(connection.open)
        assert loop.run(pause_and_drop) == 1
    finally:
        connection.close()
        loop.close()
