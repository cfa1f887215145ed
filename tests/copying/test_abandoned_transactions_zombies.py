"""A batch, and an abort, of an abandoned transaction that a broker without KIP-890 comes to only when the next one is open."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tools.kafka import SandboxCluster, read_all

from ferry.clusters.groups.coordination import Coordinator, Fenced
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.logs.internal_batches import internal_batches
from ferry.clusters.logs.producing import produce_answers, produce_request
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.error_policy import Action
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.leaders import Leaders
from ferry.config import ClientRole, Flow
from ferry.copying.abandoned_transactions import fence_zombie_requests

pytestmark = pytest.mark.brokers


def test_nothing_late_of_the_older_protocol_touches_the_next_transaction(
    cluster_factory: Callable[..., SandboxCluster], topic_factory: Callable[..., str], flow_factory: Callable[..., Flow]
) -> None:
    target = cluster_factory(
        properties={"transaction.partition.verification.enable": "false"},  # as before 3.6
        features=["transaction.version=0"],
    )
    topic, gone = topic_factory(target), f"{topic_factory(target)}-never-was"
    flow = flow_factory(f"A->B.topics = {topic}", target=target)
    loop = EventLoop()
    connection = ClusterConnection(loop, flow.target, ClientRole.PRODUCER)
    coordinator = Coordinator(loop, connection, "lane", "__ferry-A")
    leaders = Leaders(connection, [topic])

    async def produce(identity: tuple[int, int], sequence: int, value: bytes) -> Action:
        (batch,) = internal_batches([(b"key", value)])
        request = produce_request([(topic, 0, batch.encode(*identity, sequence, True))], leaders, "lane", transactions_v2=False)
        answer = await connection.send(request, leaders.of(topic, 0).node)
        return produce_answers(answer, leaders)[topic, 0].action

    async def story() -> list[Action]:
        await connection.open()
        await leaders.refresh()
        first = await coordinator.init()
        await coordinator.add_partitions(first, [(topic, 0)])
        verdicts = [await produce(first, 0, b"abandoned")]
        second = await coordinator.prove(first, transactions_v2=False)
        third = await fence_zombie_requests(coordinator, second, {(topic, 0), (gone, 0)})
        await coordinator.add_partitions(third, [(topic, 0)])  # waits for the markers
        verdicts.append(await produce(first, 1, b"late"))
        verdicts.append(await produce(third, 0, b"anew"))
        with pytest.raises(Fenced):
            await coordinator.end(second, committed=False, transactions_v2=False)
        await coordinator.add_offsets(third)
        await coordinator.commit_positions(third, {(topic, 0): CommittedOffset(1)}, transactions_v2=False)
        await coordinator.end(third, committed=True, transactions_v2=False)
        return verdicts

    try:
        assert loop.run(story) == [Action.GO_ON, Action.FENCED, Action.GO_ON]
    finally:
        connection.close()
        loop.close()
    assert [[record.value for record in part] for part in read_all(target.bootstrap, topic)] == [[b"anew"]]
