"""A transactional batch that its coordinator knows nothing of, as it stays behind when a killed broker forgets a marker.

Brokers take one where transactions have no version 2 and are not verified (`transaction.partition.verification.enable=false`).
"""

from __future__ import annotations

from ferry.clusters.groups.coordination import Coordinator
from ferry.clusters.logs.internal_batches import internal_batches
from ferry.clusters.logs.producing import produce_answers, produce_request
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.error_policy import Action
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.leaders import Leaders
from ferry.config import ClientRole, Cluster


def append_unended(cluster: Cluster, topic: str, transactional_id: str) -> None:
    """One record to partition 0, by a new epoch of `transactional_id`."""
    loop = EventLoop()
    connection = ClusterConnection(loop, cluster, ClientRole.PRODUCER)

    async def append() -> None:
        await connection.open()
        identity = await Coordinator(loop, connection, transactional_id, "").init()
        leaders = Leaders(connection, [topic])
        await leaders.refresh()
        (batch,) = internal_batches([(b"key", b"never ended")])
        request = produce_request([(topic, 0, batch.encode(*identity, 0, True))], leaders, transactional_id, transactions_v2=False)
        answer = await connection.send(request, leaders.of(topic, 0).node)
        assert produce_answers(answer, leaders)[topic, 0].action is Action.GO_ON

    try:
        loop.run(append)
    finally:
        connection.close()
        loop.close()
