"""Active/active and a ring under names that tell the source: records arrive once under each name."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.conftest import Lab
from tools.kafka import SandboxCluster, read_all

from ferry.config import load_config
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]


@pytest.mark.long
def test_a_ring_of_three_clusters_with_the_default_policy(cluster_factory: Callable[..., SandboxCluster], lab: Lab, tmp_path: Path) -> None:
    """Active/active between A and B, and the ring A, B, C: records arrive once under each name, and no internal topic gets through."""
    names = [f"{letter}{secrets.token_hex(3)}" for letter in "abc"]
    clusters = dict(zip(names, (lab.source, lab.target, cluster_factory()), strict=True))
    a, b, c = names
    topic = f"t{secrets.token_hex(4)}"
    internal = [
        f"mm2-offsets.{topic}.internal",
        f"mm2-offset-syncs_{topic}_internal",
        f"{topic}_checkpoints_internal",
        f"mm2-ferry-{topic}",
    ]
    for cluster in clusters.values():
        lab.topic(cluster, name=topic)
    for name in internal:
        lab.topic(lab.source, name=name)
    lines = [f"clusters = {', '.join(names)}", *(f"{name}.bootstrap.servers = {cluster.bootstrap}" for name, cluster in clusters.items())]
    lines += [f"{flow}.enabled = true" for flow in (f"{a}->{b}", f"{b}->{a}", f"{b}->{c}", f"{c}->{a}")]
    lines += [f"topics = .*{topic}.*", "topics.exclude = nothing", "replication.policy.separator = _", "ferry.lanes = 2"]
    lines += ["replication.factor = 1", "ferry.internal.topics.replication.factor = 1"]
    path = tmp_path / "ring.properties"
    path.write_text("\n".join(lines) + "\n")
    flows = load_config(path).flows
    for name, cluster in clusters.items():
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(10):
            producer.produce(topic, value=f"{name}{number}".encode())
        assert producer.flush(30) == 0
    for _ in range(2):
        for flow in flows:
            assert lab.run(flow).exit_code is ExitCode.DONE
    assert [lab.run(flow).records for flow in flows] == [0] * len(flows)
    found = {name: {entry for entry in topics_of(cluster) if topic in entry} for name, cluster in clusters.items()}
    assert found[a] == {topic, f"{b}_{topic}", f"{c}_{topic}", f"{c}_{b}_{topic}", *internal}
    assert found[b] == {topic, f"{a}_{topic}", f"{a}_{c}_{topic}"}
    assert found[c] == {topic, f"{b}_{topic}", f"{b}_{a}_{topic}"}
    for name, cluster in clusters.items():
        for entry in found[name] - set(internal):
            origin = entry.removesuffix(f"_{topic}").rpartition("_")[2] if entry != topic else name
            assert [record.value for part in read_all(cluster.bootstrap, entry) for record in part] == [
                f"{origin}{number}".encode() for number in range(10)
            ]


def topics_of(cluster: SandboxCluster) -> set[str]:
    return set(AdminClient(cluster.client_settings()).list_topics(timeout=15).topics)
