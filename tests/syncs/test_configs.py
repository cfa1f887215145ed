"""Configs of remote topics on brokers, as Kafka's own kafka-configs shows them."""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourcePatternType,
    ResourceType,
)
from tests.both_clusters import both_clusters
from tests.conftest import Lab
from tests.opened import sync_acls, sync_configs, sync_topics
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.kafka.mirror_maker import MirrorMaker

from ferry.config import Flow
from ferry.ledger.sync_outcome import SyncOutcome
from ferry.sandbox.jars import broker_jars, java

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
TopicFactory = Callable[..., str]
TOOL_SECONDS = 60
ONLY_THERE = "set on the remote topic only: the source has its default"


@pytest.mark.long
def test_remote_topics_follow_their_sources(lab: Lab) -> None:
    changed = lab.topic(lab.source, config={"retention.ms": "1000000", "max.compaction.lag.ms": "5000", "min.insync.replicas": "1"})
    same = lab.topic(lab.source, config={"segment.bytes": "5242880", "compression.type": "lz4"})
    wide = lab.topic(lab.source)
    flow = lab.flow(f"A->B.topics = {changed},{same},{wide}")
    remote = {topic: f"{flow.source.alias}.{topic}" for topic in (changed, same, wide)}
    assert sync_configs(flow).changes == ()  # there is no remote topic yet
    sync_topics(flow)
    assert changes(sync_configs(flow)) == set()

    alter(lab.source, changed, {"retention.ms": "2000000", "max.compaction.lag.ms": None, "min.insync.replicas": "2"})
    alter(lab.target, remote[changed], {"min.insync.replicas": "3", "cleanup.policy": "compact"})
    alter(lab.target, remote[wide], {"segment.ms": "123456"})
    wanted = {
        (f"topic {remote[changed]}", "set", "retention.ms: 1000000 -> 2000000", "set on the topic at the source"),
        (f"topic {remote[changed]}", "delete", "max.compaction.lag.ms: 5000 -> default", ONLY_THERE),
        (f"topic {remote[changed]}", "delete", "cleanup.policy: compact -> default", ONLY_THERE),
        (f"topic {remote[wide]}", "delete", "segment.ms: 123456 -> default", ONLY_THERE),
    }
    before = kafka_configs(lab.target)
    assert changes(sync_configs(flow, dry_run=True)) == wanted
    assert kafka_configs(lab.target) == before
    outcome = sync_configs(flow)
    assert changes(outcome) == wanted
    assert (
        f"topic {remote[changed]} min.insync.replicas",
        "in the property config.properties.exclude: 2 at the source, 3 on the remote topic",
    ) in {(skipped.what, skipped.reason) for skipped in outcome.skipped}
    assert outcome.counts == {"topics": 3, "topics_that_differ": 2}
    after = kafka_configs(lab.target)
    assert after[remote[changed]] == {"retention.ms": "2000000", "min.insync.replicas": "3"}
    assert after[remote[same]] == {"segment.bytes": "5242880", "compression.type": "lz4"}
    assert after[remote[wide]] == {}
    assert changes(sync_configs(flow)) == set()


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, SandboxCluster]]:
    """A source and a target whose brokers' files say something about topics."""
    source = {"log.retention.ms": "1234567", "message.max.bytes": "3000000"}
    target = {"log.retention.ms": "-1", "message.max.bytes": "500000", "log.cleaner.min.compaction.lag.ms": "100000"}
    with both_clusters(tmp_path_factory.mktemp("configured"), source, target, authorizer=True) as pair:
        yield pair


def test_what_the_target_refuses_is_named_and_the_rest_is_done(
    flow_factory: FlowFactory, topic_factory: TopicFactory, configured: tuple[SandboxCluster, SandboxCluster]
) -> None:
    """The target wants compaction to wait longer than this source topic lets it."""
    source, target = configured
    topic, other = topic_factory(source), topic_factory(source)
    flow = flow_factory(f"A->B.topics = {topic},{other}", source=source, target=target)
    sync_topics(flow)
    alter(source, topic, {"max.compaction.lag.ms": "5000", "retention.ms": "5000000", "segment.ms": "1000"})
    alter(source, other, {"retention.ms": "6000000"})
    outcome = sync_configs(flow)
    assert outcome.failed == ()
    (reason,) = {
        skipped.reason for skipped in outcome.skipped if skipped.what == f"topic {flow.source.alias}.{topic} max.compaction.lag.ms"
    }
    assert f"cluster {flow.target.alias}" in reason
    assert "with max.compaction.lag.ms in config.properties.exclude" in reason
    raised = {"max.message.bytes": "3000000"}
    found = kafka_configs(target)
    assert found[f"{flow.source.alias}.{topic}"] == raised | {"retention.ms": "5000000", "segment.ms": "1000"}
    assert found[f"{flow.source.alias}.{other}"] == raised | {"retention.ms": "6000000"}
    assert len(outcome.changes) == 3


def test_defaults_of_the_brokers(
    flow_factory: FlowFactory, topic_factory: TopicFactory, configured: tuple[SandboxCluster, SandboxCluster]
) -> None:
    """What is set for all brokers is copied, what stands in a broker's file is not, Kafka's own defaults only with use.defaults.from."""
    source, target = configured
    topic = topic_factory(source)
    flow = flow_factory(f"A->B.topics = {topic}", source=source, target=target)
    remote = f"{flow.source.alias}.{topic}"
    sync_topics(flow)
    assert kafka_configs(target)[remote] == {"max.message.bytes": "3000000"}
    assert changes(sync_configs(flow)) == set()

    config_command(source, "--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "log.flush.interval.messages=77")
    assert [change.detail for change in sync_configs(flow).changes] == ["flush.messages: 9223372036854775807 (Kafka's default) -> 77"]
    assert kafka_configs(target)[remote] == {"max.message.bytes": "3000000", "flush.messages": "77"}

    alter(target, remote, {"retention.ms": "99"})
    theirs = flow_factory(f"A->B.topics = {topic}", "A->B.use.defaults.from = source", source=source, target=target)
    assert sync_configs(theirs).failed == ()
    found = kafka_configs(target)[remote]
    expected = {"retention.ms": "99", "flush.ms": "9223372036854775807", "segment.ms": "604800000", "min.compaction.lag.ms": "0"}
    assert {name: found[name] for name in expected} == expected
    assert "min.insync.replicas" not in found
    assert changes(sync_configs(theirs)) == set()


@pytest.mark.long
def test_beside_mirror_maker(
    flow_factory: FlowFactory, topic_factory: TopicFactory, configured: tuple[SandboxCluster, SandboxCluster], tmp_path: Path
) -> None:
    """Both sync from one source into one target, and make the same of configs and ACLs, a raised batch limit apart."""
    source, target = configured
    prefix = f"t-{secrets.token_hex(4)}"
    topics = {
        f"{prefix}-plain": {},
        f"{prefix}-own": {"retention.ms": "1000000", "compression.type": "lz4", "max.message.bytes": "400000", "min.insync.replicas": "1"},
        f"{prefix}-compacted": {"cleanup.policy": "compact,delete", "message.timestamp.after.max.ms": "3600000"},
        f"{prefix}-stamped": {"message.timestamp.type": "LogAppendTime", "segment.bytes": "2097152"},
    }
    for topic, config in topics.items():
        topic_factory(source, name=topic, partitions=2, config=config)
    broker = ConfigResource(ResourceType.BROKER, "1")
    alter_resource(source, broker, {"log.flush.interval.messages": "1000"})
    grant(source, prefix)
    flow = flow_factory(f"A->B.topics = {prefix}.*", source=source, target=target)
    sync_topics(flow)
    sync_acls(flow)
    twins = {f"{flow.source.alias}.{topic}": f"theirs.{topic}" for topic in topics}
    with MirrorMaker.start(mirror_maker_properties(source, target, prefix), tmp_path / "connect.properties") as mirror_maker:
        wait_for(mirror_maker, lambda: differences(target, twins))
        wait_for(mirror_maker, lambda: acls(target, "theirs.") ^ acls(target, f"{flow.source.alias}."))
        assert len(acls(target, "theirs.")) == len(GRANTED_UNDER_MIRROR_MAKER)

        own = f"{prefix}-own"
        alter(source, own, {"retention.ms": None, "compression.type": "zstd", "segment.ms": "777777"})
        alter_resource(source, broker, {"log.flush.interval.messages": None, "log.index.interval.bytes": "8192"})
        for alias in ("theirs", flow.source.alias):
            alter(target, f"{alias}.{own}", {"cleanup.policy": "compact", "min.insync.replicas": "2"})
        assert sync_configs(flow).failed == ()
        wait_for(mirror_maker, lambda: differences(target, twins))
        found = configs_of(target, [f"theirs.{own}"])[f"theirs.{own}"]
        found.pop("flush.messages", None)  # what other tests set for all brokers
        assert found == {
            "retention.ms": "1000000",  # the source has one in its broker's file now, so both leave the old value alone
            "compression.type": "zstd",
            "segment.ms": "777777",
            "max.message.bytes": "400000",
            "min.insync.replicas": "2",
            "index.interval.bytes": "8192",
        }


def test_what_formatting_set_counts_as_the_default(lab: Lab) -> None:
    """Clusters that 4.1 or newer formatted tell of min.insync.replicas as set for all brokers (KIP-966), and nobody can remove it."""
    plain, own = lab.topic(lab.source), lab.topic(lab.source, config={"min.insync.replicas": "1"})
    resource, client = ConfigResource(ResourceType.TOPIC, plain), AdminClient(lab.source.client_settings())
    told = client.describe_configs([resource])[resource].result(30)["min.insync.replicas"]
    assert (told.value, told.source) == ("1", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value)
    flow = lab.flow(f"A->B.topics = {plain},{own}", "A->B.config.properties.exclude = retention.*")
    remote = {topic: f"{flow.source.alias}.{topic}" for topic in (plain, own)}
    sync_topics(flow)
    assert changes(sync_configs(flow)) == set()
    assert configs_of(lab.target, remote.values()) == {remote[plain]: {}, remote[own]: {"min.insync.replicas": "1"}}
    alter(lab.target, remote[plain], {"min.insync.replicas": "2"})
    assert changes(sync_configs(flow)) == {(f"topic {remote[plain]}", "delete", "min.insync.replicas: 2 -> default", ONLY_THERE)}


def changes(outcome: SyncOutcome) -> set[tuple[str, str, str, str]]:
    assert outcome.failed == ()
    return {(change.what, change.action, change.detail, change.reason) for change in outcome.changes}


def alter(cluster: SandboxCluster, topic: str, entries: dict[str, str | None]) -> None:
    alter_resource(cluster, ConfigResource(ResourceType.TOPIC, topic), entries)


def alter_resource(cluster: SandboxCluster, resource: ConfigResource, entries: dict[str, str | None]) -> None:
    operations = [
        ConfigEntry(name, text, incremental_operation=AlterConfigOpType.DELETE if text is None else AlterConfigOpType.SET)
        for name, text in entries.items()
    ]
    wanted = ConfigResource(resource.restype, resource.name, incremental_configs=operations)
    client = AdminClient(cluster.client_settings())
    for future in client.incremental_alter_configs([wanted]).values():
        future.result(30)


def kafka_configs(cluster: SandboxCluster) -> dict[str, dict[str, str]]:
    """What every topic itself sets, from Kafka's Java client."""
    found: dict[str, dict[str, str]] = {}
    for line in config_command(cluster, "--describe", "--entity-type", "topics").splitlines():
        if begins := re.match(r"Dynamic configs for topic (\S+) are:", line):
            found[begins[1]] = topic = {}
        elif entry := re.match(r"  ([\w.]+)=(.*?) sensitive=", line):
            topic[entry[1]] = entry[2]
    return found


def config_command(cluster: SandboxCluster, *arguments: str) -> str:
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{broker_jars()}/*", "kafka.admin.ConfigCommand"]
    command += ["--bootstrap-server", cluster.bootstrap, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=True).stdout


# Principal, operation, permission, pattern; and which of them MM2 copies, as what.
GRANTS = (
    ("User:a", "ALL", "ALLOW", "LITERAL"),
    ("User:b", "WRITE", "ALLOW", "LITERAL"),
    ("User:c", "WRITE", "DENY", "LITERAL"),
    ("User:d", "DESCRIBE_CONFIGS", "ALLOW", "LITERAL"),
    ("User:e", "READ", "ALLOW", "PREFIXED"),
    ("User:f", "ALL", "DENY", "LITERAL"),
)
GRANTED_UNDER_MIRROR_MAKER = ("User:a", "User:c", "User:d", "User:f")
RAISED = {"max.message.bytes": "3000000"}.items()


def grant(cluster: SandboxCluster, prefix: str) -> None:
    client = AdminClient(cluster.client_settings())
    bindings = [
        AclBinding(
            ResourceType.TOPIC,
            f"{prefix}-plain",
            ResourcePatternType[pattern],
            user,
            "*",
            AclOperation[operation],
            AclPermissionType[permission],
        )
        for user, operation, permission, pattern in GRANTS
    ]
    for future in client.create_acls(bindings).values():
        future.result(30)


def acls(cluster: SandboxCluster, prefix: str) -> set[tuple[object, ...]]:
    """What is granted on topics that begin with `prefix`, without it."""
    client = AdminClient(cluster.client_settings())
    everything = AclBindingFilter(ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
    return {
        (acl.name.removeprefix(prefix), acl.resource_pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type)
        for acl in client.describe_acls(everything).result(30)
        if acl.name.startswith(prefix)
    }


def mirror_maker_properties(source: SandboxCluster, target: SandboxCluster, prefix: str) -> dict[str, str]:
    factors = ("replication.factor", "offset-syncs.topic.replication.factor", "checkpoints.topic.replication.factor")
    factors += ("heartbeats.topic.replication.factor",)
    factors += ("offset.storage.replication.factor", "config.storage.replication.factor", "status.storage.replication.factor")
    return dict.fromkeys(factors, "1") | {
        "clusters": "theirs, B",
        "theirs.bootstrap.servers": source.bootstrap,
        "B.bootstrap.servers": target.bootstrap,
        "theirs->B.enabled": "true",
        "topics": f"{prefix}.*",
        "emit.heartbeats.enabled": "false",
        "offset-syncs.topic.location": "target",
        "sync.topic.configs.interval.seconds": "1",
        "sync.topic.acls.interval.seconds": "1",
    }


def configs_of(cluster: SandboxCluster, topics: Iterable[str]) -> dict[str, dict[str, str | None]]:
    """What each of these topics itself sets; those that do not exist are absent."""
    client = AdminClient(cluster.client_settings())
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in set(topics) & set(client.list_topics(timeout=10).topics)]
    return {
        resource.name: {
            name: entry.value
            for name, entry in future.result(30).items()
            if ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
        }
        for resource, future in (client.describe_configs(resources) if resources else {}).items()
    }


def differences(cluster: SandboxCluster, twins: dict[str, str]) -> list[tuple[str, object, object]]:
    """Where Ferry's topics (keys) are not configured as MM2's, but for the batch limit that Ferry raises."""
    found = configs_of(cluster, (*twins, *twins.values()))
    both = [(theirs, found[ours].items() - RAISED, found.get(theirs, {"missing": ""}).items()) for ours, theirs in twins.items()]
    return [(topic, ours - theirs, theirs - ours) for topic, ours, theirs in both if ours != theirs]


def wait_for(mirror_maker: MirrorMaker, remaining: Callable[[], Collection[object]]) -> None:
    """Until nothing remains."""

    def done() -> bool:
        mirror_maker.check()
        return not remaining()

    until(done, lambda: f"{remaining()}\n{mirror_maker.log_tail()}")
