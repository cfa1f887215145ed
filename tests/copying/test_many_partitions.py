"""Very many partitions in one lane, on brokers whose largest batch is smaller than what their positions take."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conftest import Lab
from tests.opened import open_groups
from tools.kafka import SandboxCluster, compare_topics

from ferry.clusters.groups.coordination import ask_positions
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import open_cluster
from ferry.copying import transaction
from ferry.errors import ExitCode

pytestmark = pytest.mark.brokers

PARTITIONS = 300
LIMIT = {"message.max.bytes": "20000"}


@pytest.mark.parametrize(("features", "most"), [((), 1_000), (("transaction.version=0",), 70)])
def test_a_lane_of_300_partitions_commits_where_a_batch_has_20000_bytes(
    features: tuple[str, ...], most: int, cluster_factory: Callable[..., SandboxCluster], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "MOST_PARTITIONS", most)
    target = cluster_factory(LIMIT, features=features)
    topic = lab.topic(lab.source, partitions=PARTITIONS)
    lab.produce(lab.source, topic, [(number, b"k", str(number).encode()) for number in range(0, PARTITIONS, 2)])
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.lanes = 1", target=target)
    report = lab.run(flow)
    assert (report.exit_code, report.records) == (ExitCode.DONE, PARTITIONS // 2)
    remote = f"{flow.source.alias}.{topic}"
    assert compare_topics(lab.source.bootstrap, target.bootstrap, {topic: remote}).equal
    group = flow.position_group
    expected = {TopicPartition(remote, number): (number + 1) % 2 for number in range(PARTITIONS)}
    with open_cluster(flow.target) as opened:
        assert ask_positions(opened, group, stable=True).answer() == expected
    assert lab.run(flow).records == 0
    offsets = {TopicPartition(remote, number): CommittedOffset(number, -1, "as a sync writes them") for number in range(PARTITIONS)}
    with open_groups(flow.target) as groups:
        assert groups.commit("readers", offsets) == {}
        assert groups.offsets(["readers"])["readers"] == offsets
