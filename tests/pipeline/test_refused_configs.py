"""A whole flow to a broker whose own policies refuse configs and numbers of replicas: it copies, and names what it leaves out."""

from __future__ import annotations

import secrets
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.both_clusters import FOREVER
from tests.conftest import Lab
from tests.opened import administration, plan_run, sync_configs
from tools.kafka import SandboxCluster, compare_topics

from ferry.clusters.admin.describe import ConfigOrigin
from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.pipeline.tables import plan_parts
from ferry.sandbox.broker import JAVA_OPTIONS
from ferry.sandbox.jars import broker_jars, java

pytestmark = [pytest.mark.brokers, pytest.mark.long]

POLICY = Path(__file__).parents[1] / "java" / "Refusals.java"
COMPILE_SECONDS = 120


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxCluster]:
    """A broker that allows no flush.ms and no segment.bytes, and wants three replicas of some topics."""
    directory = tmp_path_factory.mktemp("strict")
    command = [str(Path(java()).resolve().with_name("javac")), "-cp", f"{broker_jars()}/*", "-d", str(directory / "classes"), str(POLICY)]
    subprocess.run(command, check=True, timeout=COMPILE_SECONDS)
    jar = directory / "refusals.jar"
    with zipfile.ZipFile(jar, "w") as packed:
        packed.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nPremain-Class: Refusals\n\n")
        packed.write(directory / "classes" / "Refusals.class", "Refusals.class")
    policies = {f"{what}.policy.class.name": "Refusals" for what in ("create.topic", "alter.config")}
    properties = FOREVER | policies | {"refusals.configs": "flush.ms,segment.bytes"}
    with SandboxCluster.start(directory, "strict", properties=properties, java_options=[*JAVA_OPTIONS, f"-javaagent:{jar}"]) as cluster:
        yield cluster


def test_what_the_target_refuses_is_named_and_the_records_are_copied(strict: SandboxCluster, lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=2, config={"flush.ms": "77000", "retention.ms": "86400000"})
    lab.produce(lab.source, topic, [(number % 2, None, b"%d" % number) for number in range(100)])
    flow = lab.flow(f"A->B.topics = {topic}", target=strict)
    remote = f"{flow.source.alias}.{topic}"

    plan = plan_run(flow, RunRequest(flow.name, "plan"))
    (refused,) = plan.topics.refused
    assert refused.what == f"topic {remote} flush.ms"
    assert "flush.ms is not for you" in refused.reason
    assert plan.failed == ()
    assert f"without topic {remote} flush.ms: {refused.reason}" in list(plan_parts(plan))

    assert lab.run(flow).exit_code is ExitCode.DONE
    assert compare_topics(lab.source.bootstrap, strict.bootstrap, {topic: remote}).equal
    assert own_configs(flow, remote, flow.state_topic) == {
        remote: {"retention.ms": "86400000"},
        flow.state_topic: {
            "cleanup.policy": "compact",
            "segment.ms": "21600000",
            "min.cleanable.dirty.ratio": "0.1",
            "compression.type": "producer",
        },
    }

    alter(lab.source, topic, "retention.ms", "90000000")
    synced = sync_configs(flow)
    assert (synced.failed, [change.detail for change in synced.changes]) == ((), ["retention.ms: 86400000 -> 90000000"])
    (left,) = (skipped for skipped in synced.skipped if skipped.what == f"topic {remote} flush.ms")
    assert "flush.ms is not for you" in left.reason
    assert own_configs(flow, remote) == {remote: {"retention.ms": "90000000"}}


def test_a_number_of_replicas_that_a_policy_wants(strict: SandboxCluster, lab: Lab) -> None:
    topic = lab.topic(lab.source, name=f"t-{secrets.token_hex(4)}-thick")
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.replication.factor = 1", target=strict)
    (failure,) = plan_run(flow, RunRequest(flow.name, "plan")).failed
    assert "a topic has 3 replicas, not 1; replication.factor=1: replication.factor=-1 leaves the number to the brokers" in failure.problem


def own_configs(flow: Flow, *topics: str) -> dict[str, dict[str, str | None]]:
    """What each topic of the target itself sets."""
    with administration(flow.target) as target:
        found = target.topic_configs(topics)
    return {
        topic: {name: entry.value for name, entry in entries.items() if entry.origin is ConfigOrigin.TOPIC}
        for topic, entries in found.items()
    }


def alter(cluster: SandboxCluster, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient(cluster.client_settings())
    client.incremental_alter_configs([resource])[resource].result(30)
