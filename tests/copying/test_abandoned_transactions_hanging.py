"""A broker that forgot markers of the flow's own transaction: the partition takes nothing more, by name, until somebody has ended it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import ClusterFactory, Lab
from tests.copying.unended import append_unended
from tests.drills.faults.hanging import settle_hanging
from tools.kafka import read_all

from ferry.clusters.logs.open_transactions import open_of
from ferry.copying import abandoned_transactions, lane_assignment
from ferry.errors import ExitCode

pytestmark = pytest.mark.brokers


def test_nothing_is_copied_behind_an_own_transaction_that_its_coordinator_forgot(
    cluster_factory: ClusterFactory, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Such a broker takes batches that its coordinator knows nothing of: the state that a kill around EndTxn leaves.
    target = cluster_factory(properties={"transaction.partition.verification.enable": "false"}, features=["transaction.version=0"])
    topic, other = lab.topic(lab.source), lab.topic(lab.source)
    lab.produce(lab.source, topic, [(0, None, b"first")])
    lines = (f"A->B.topics = {topic},{other}", *lab.copy_only)
    flow = lab.flow("A->B.ferry.lanes = 1", *lines, target=target)
    assert lab.run(flow).exit_code is ExitCode.DONE
    remote = f"{flow.source.alias}.{topic}"
    append_unended(flow.target, remote, flow.transactional_id(0))
    # The run that meets it has another number of lanes, and this partition in another one.
    flow = lab.flow("A->B.ferry.lanes = 2", *lines, target=target)
    monkeypatch.setattr(
        lane_assignment, "spread", lambda parts, *_: [[part] for part in sorted(parts, key=lambda part: part.topic == topic)]
    )
    lab.produce(lab.source, topic, [(0, None, b"second")])
    lab.produce(lab.source, other, [(0, None, b"third")])
    # At first the leader of the partition does not tell, as one that was just elected.
    untold: list[str] = []

    async def tell_later(*asked: Any) -> Any:
        told = await open_of(*asked)
        late = set() if untold else {key for key in told if key.topic == remote}
        untold.extend(key.topic for key in late)
        return {key: entry for key, entry in told.items() if key not in late}

    monkeypatch.setattr(abandoned_transactions, "open_of", tell_later)
    report = lab.run(flow)
    assert untold
    assert (report.exit_code, report.records) == (ExitCode.PARTLY_FAILED, 1)
    (failed,) = report.failed
    assert (failed.topic, failed.partition, failed.error) == (topic, 0, "TransactionHangs")
    assert f"cluster {flow.target.alias}, {remote}-0: a transaction of this flow is open from offset 2 on" in failed.problem
    assert settle_hanging(target.bootstrap, "ferry-") == [flow.transactional_id(0)]
    report = lab.run(flow)
    assert (report.exit_code, report.records) == (ExitCode.DONE, 1)
    assert [record.value for record in read_all(target.bootstrap, remote)[0]] == [b"first", b"second"]
