"""A broker that forgot markers of the flow's own transaction: the partition takes nothing more, by name, until somebody has ended it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conftest import ClusterFactory, FlowFactory, RunFlow, TopicFactory
from tests.faults.hanging import settle_hanging

from ferry.clusters.connections import ClusterConnection, EventLoop
from ferry.clusters.coordination import Coordinator
from ferry.clusters.leaders import Leaders
from ferry.clusters.producing import Verdict, produce_answers, produce_request
from ferry.config import ClientRole, Flow
from ferry.copying.internal_batch import internal_batches
from ferry.copying.lanes import lane_of, transactional_id
from ferry.errors import ExitCode
from ferry.sandbox import SandboxCluster
from ferry.sandbox.reading import read_all

pytestmark = pytest.mark.brokers


def leave_open(flow: Flow, topic: str, remote: str) -> None:
    """A batch of the lane's producer in the remote partition, and a coordinator that calls all its transactions ended."""
    loop, name = EventLoop(), transactional_id(flow.name, lane_of(topic, 0, flow.lanes))
    connection = ClusterConnection(loop, flow.target, ClientRole.PRODUCER)

    async def append() -> None:
        await connection.open()
        identity = await Coordinator(loop, connection, name, "").init()
        leaders = Leaders(connection, [remote])
        await leaders.refresh()
        (batch,) = internal_batches([(b"key", b"of an ended transaction")])
        request = produce_request([(remote, 0, batch.encode(*identity, 0, True))], leaders, name, transactions_v2=False)
        answer = await connection.send(request, leaders.of(remote, 0).node)
        assert produce_answers(answer, leaders)[remote, 0].verdict is Verdict.ACCEPTED

    try:
        loop.run(append)
    finally:
        connection.close()
        loop.close()


def test_nothing_is_copied_behind_an_own_transaction_that_its_coordinator_forgot(
    cluster_factory: ClusterFactory,
    source_cluster: SandboxCluster,
    topic_factory: TopicFactory,
    flow_factory: FlowFactory,
    copy_only: tuple[str, ...],
    run_flow: RunFlow,
    produce: Callable[..., None],
) -> None:
    # Such a broker takes batches that its coordinator knows nothing of: the state that a kill around EndTxn leaves.
    target = cluster_factory(properties={"transaction.partition.verification.enable": "false"}, features=["transaction.version=0"])
    topic, other = topic_factory(source_cluster), topic_factory(source_cluster)
    produce(source_cluster, topic, [(0, None, b"first")])
    lines = (f"A->B.topics = {topic},{other}", "A->B.ferry.lanes = 1", *copy_only)
    flow = flow_factory(*lines, target=target)
    assert run_flow(flow).exit_code is ExitCode.DONE
    remote = f"{flow.source.alias}.{topic}"
    leave_open(flow, topic, remote)
    produce(source_cluster, topic, [(0, None, b"second")])
    produce(source_cluster, other, [(0, None, b"third")])
    report = run_flow(flow)
    assert (report.exit_code, report.records) == (ExitCode.PARTLY_FAILED, 1)
    (failed,) = report.failed
    assert (failed.topic, failed.partition, failed.error) == (topic, 0, "TransactionHangs")
    assert f"cluster {flow.target.alias}, {remote}-0: a transaction of this flow is open from offset 2 on" in failed.problem
    assert settle_hanging(target.bootstrap, "ferry-") == [transactional_id(flow.name, 0)]
    report = run_flow(flow)
    assert (report.exit_code, report.records) == (ExitCode.DONE, 1)
    assert [record.value for record in read_all(target.bootstrap, remote)[0]] == [b"first", b"second"]
