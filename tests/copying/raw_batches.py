"""Batches that a broker appends as they are: what no client's own checks let through."""

from __future__ import annotations

from ferry.clusters.logs.producing import produce_answers, produce_request
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.error_policy import Action
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.leaders import Leaders
from ferry.config import ClientRole, Cluster


def append_raw(cluster: Cluster, topic: str, *batches: bytes) -> None:
    """Append to partition 0, one request for each batch."""
    loop = EventLoop()
    connection = ClusterConnection(loop, cluster, ClientRole.PRODUCER)

    async def append() -> None:
        await connection.open()
        leaders = Leaders(connection, [topic])
        await leaders.refresh()
        for batch in batches:
            request = produce_request([(topic, 0, (batch,))], leaders, None, transactions_v2=False)
            answer = produce_answers(await connection.send(request, leaders.of(topic, 0).node), leaders)[topic, 0]
            assert answer.action is Action.GO_ON, answer

    try:
        loop.run(append)
    finally:
        connection.close()
        loop.close()
