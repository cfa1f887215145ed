"""A backlog that the source's brokers have moved to remote storage (KIP-405), aborted transactions included, is copied like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from tests.both_clusters import FOREVER, both_clusters
from tests.cli.inside import ferry
from tools.kafka import SandboxCluster, compare_topics, tiered
from tools.kafka.properties_file import write_properties

pytestmark = [pytest.mark.brokers, pytest.mark.long]

TOPIC, PARTITIONS, REMOTE = "backlog", 2, 0.9
TRANSACTIONS, IN_TRANSACTION, VALUE_BYTES = 60, 300, 2_000
# Every third transaction is aborted.
ABORTED = 3


def fill(cluster: SandboxCluster) -> int:
    """Some 36 MB; how many records were committed."""
    admin = AdminClient(cluster.client_settings())
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=tiered.TOPIC)])[TOPIC].result(30)
    producer = Producer({**cluster.client_settings(), "transactional.id": "fills", "transaction.timeout.ms": 300_000})
    producer.init_transactions(60)
    committed = 0
    for transaction in range(TRANSACTIONS):
        producer.begin_transaction()
        for number in range(IN_TRANSACTION):
            producer.produce(TOPIC, b"%d %d " % (transaction, number) + b"v" * VALUE_BYTES, b"k", partition=number % PARTITIONS)
        producer.flush(60)
        if transaction % ABORTED == 0:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
            committed += IN_TRANSACTION
    return committed


@pytest.mark.parametrize("there", [True, False], ids=["both sides have remote storage", "the source only"])
def test_a_backlog_in_remote_storage(there: bool, tmp_path: Path) -> None:
    on_target = tiered.broker_properties(tmp_path / "remote-target") if there else FOREVER
    with both_clusters(tmp_path, tiered.broker_properties(tmp_path / "remote"), on_target) as (source, target):
        committed = fill(source)
        assert tiered.await_remote(source.bootstrap, TOPIC, PARTITIONS, REMOTE) >= REMOTE
        config = tmp_path / "mm2.properties"
        settings = {
            "clusters": "A, B",
            "A.bootstrap.servers": source.bootstrap,
            "B.bootstrap.servers": target.bootstrap,
            "A->B.enabled": "true",
            "A->B.topics": TOPIC,
            "replication.factor": "1",
            "ferry.internal.topics.replication.factor": "1",
            **{f"{name}.topic.replication.factor": "1" for name in ("offset-syncs", "checkpoints", "heartbeats")},
        }
        write_properties(settings, config)
        done = ferry("run", config, "--flow", "A->B", "--master", "inline")
        assert done.returncode == 0, done.stderr
        found = compare_topics(source.bootstrap, target.bootstrap, {TOPIC: f"A.{TOPIC}"})
        assert (found.equal, found.records) == (True, committed)
        admin, copy = AdminClient(target.client_settings()), ConfigResource(ConfigResource.Type.TOPIC, f"A.{TOPIC}")
        configs = admin.describe_configs([copy])[copy].result(30)
        assert configs["remote.storage.enable"].value == ("true" if there else "false")
        assert configs["segment.bytes"].value == tiered.TOPIC["segment.bytes"]
