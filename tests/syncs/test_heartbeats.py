"""Heartbeats on real clusters, read with librdkafka, with and without permissions on the source."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)
from tests.conftest import Lab
from tests.opened import carry_out, plan_run, sync_heartbeat
from tools.kafka import SandboxCluster, read_all

from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.syncs.names import SyncName

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
USERS = {"admin": "admin-password", "reader": "reader-password"}
TOPIC = "heartbeats"
BOTH = ("B->A.emit.heartbeats.enabled = true",)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxCluster]:
    """A source where `reader` may read everything and write nothing."""
    with SandboxCluster.start(tmp_path_factory.mktemp("guarded"), "guarded", users=USERS, authorizer=True) as cluster:
        bindings = [
            AclBinding(ResourceType.TOPIC, "*", ResourcePatternType.LITERAL, "User:reader", "*", operation, AclPermissionType.ALLOW)
            for operation in (AclOperation.READ, AclOperation.DESCRIBE)
        ]
        admin = AdminClient(cluster.client_settings())
        for future in admin.create_acls(bindings).values():
            future.result(30)
        yield cluster


@pytest.fixture
def flow_as(flow_factory: FlowFactory, guarded: SandboxCluster) -> Callable[..., Flow]:
    """The flow from the guarded source: `flow_as("reader", line…)`."""

    def load(user: str, *lines: str) -> Flow:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        login = (
            "A.security.protocol = SASL_PLAINTEXT",
            "A.sasl.mechanism = PLAIN",
            f'A.sasl.jaas.config = {module} required username="{user}" password="{USERS[user]}";',
        )
        return flow_factory(*login, *lines, source=guarded)

    return load


def beats(cluster: SandboxCluster, aliases: Sequence[str]) -> list[tuple[bytes | None, int, int]]:
    """(value, record timestamp, partition) of the heartbeats with the key of `aliases`, in log order."""
    key = b"".join(len(alias).to_bytes(2, "big") + alias.encode() for alias in aliases)
    settings = cluster.client_settings()
    if TOPIC not in AdminClient(settings).list_topics(timeout=10).topics:
        return []
    everything = enumerate(read_all(settings, TOPIC))
    return [(record.value, record.timestamp, partition) for partition, records in everything for record in records if record.key == key]


def test_heartbeats_of_both_directions_have_the_bytes_of_mirror_maker(
    flow_as: Callable[..., Flow], guarded: SandboxCluster, target_cluster: SandboxCluster
) -> None:
    flow = flow_as("admin", *BOTH)
    a, b = flow.source.alias, flow.target.alias
    planned = sync_heartbeat(flow, dry_run=True)
    assert [change.what for change in planned.changes if change.action == "write"] == [f"topic {TOPIC} on {b}", f"topic {TOPIC} on {a}"]
    assert beats(target_cluster, (a, b)) == beats(guarded, (b, a)) == []
    before = time.time_ns() // 1_000_000
    assert sync_heartbeat(flow).failed == ()
    again = sync_heartbeat(flow)
    assert (again.failed, again.skipped, again.notices) == ((), (), ())
    assert [(change.action, change.what) for change in again.changes] == [
        ("write", f"topic {TOPIC} on {b}"),
        ("write", f"topic {TOPIC} on {a}"),
    ]
    for cluster, aliases in ((target_cluster, (a, b)), (guarded, (b, a))):
        found = beats(cluster, aliases)
        assert len(found) == 2
        for value, timestamp, partition in found:
            assert value == bytes(2) + timestamp.to_bytes(8, "big")
            assert before <= timestamp <= time.time_ns() // 1_000_000
            assert partition == 0
    admin = AdminClient(guarded.client_settings())
    (config,) = [future.result(30) for future in admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, TOPIC)]).values()]
    assert {name: entry.value for name, entry in config.items() if entry.source == 1} == {"cleanup.policy": "compact"}
    assert len(admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions) == 1


@pytest.mark.parametrize("asked", [False, True])
def test_a_source_that_may_only_be_read(
    flow_as: Callable[..., Flow], guarded: SandboxCluster, target_cluster: SandboxCluster, *, asked: bool
) -> None:
    flow = flow_as("reader", *(BOTH if asked else ("emit.heartbeats.enabled = true",)))
    a, b = flow.source.alias, flow.target.alias
    outcome = sync_heartbeat(flow)
    told = outcome.notices if not asked else [str(failure) for failure in outcome.failed]
    (line,) = told
    wanted = ("Create and Write on topic heartbeats", f"set {b}->{a}.emit.heartbeats.enabled=false", "does not allow")
    assert [part for part in wanted if part not in line] == []
    assert (len(outcome.notices), len(outcome.failed)) == ((0, 1) if asked else (1, 0))
    assert len(beats(target_cluster, (a, b))) == 1
    assert beats(guarded, (b, a)) == []


def test_only_the_direction_that_is_wanted(flow_as: Callable[..., Flow], target_cluster: SandboxCluster, guarded: SandboxCluster) -> None:
    flow = flow_as("admin", "A->B.emit.heartbeats.enabled = false", *BOTH)
    a, b = flow.source.alias, flow.target.alias
    outcome = sync_heartbeat(flow)
    assert [entry.reason for entry in outcome.skipped] == ["emit.heartbeats.enabled=false"]
    assert (beats(target_cluster, (a, b)), len(beats(guarded, (b, a)))) == ([], 1)
    off = flow_as("admin", "emit.heartbeats.enabled = false")
    assert off.reverse_heartbeat == "off"
    assert sync_heartbeat(off).failed == ()  # somebody asked for it
    assert (len(beats(target_cluster, (a, b))), len(beats(guarded, (b, a)))) == (1, 1)


def test_a_target_that_refuses_records_fails_the_whole_sync(flow_factory: FlowFactory, guarded: SandboxCluster) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = f'B.sasl.jaas.config = {module} required username="reader" password="{USERS["reader"]}";'
    flow = flow_factory("B.security.protocol = SASL_PLAINTEXT", "B.sasl.mechanism = PLAIN", login, target=guarded)
    assert flow.reverse_heartbeat == "off"
    outcome = carry_out(flow, SyncName.HEARTBEAT, on_request=True)
    (failure,) = outcome.failed
    assert (failure.error, outcome.exit_code) == ("NotAuthorized", ExitCode.UNREACHABLE)
    assert "heartbeats" in failure.problem


def test_a_run_copies_heartbeats_without_spark_and_a_backfill_leaves_them_out(flow_as: Callable[..., Flow], lab: Lab) -> None:
    flow = flow_as("admin", "A->B.topics =", "A->B.ferry.start = latest", *BOTH)
    assert sync_heartbeat(flow).failed == ()
    lab.run(flow)
    assert sync_heartbeat(flow).failed == ()
    planned = plan_run(flow, RunRequest(flow.name, "look"))
    assert (planned.needs_copy, planned.needs_preparation) == (False, True)
    (copied,) = lab.run(flow).partitions
    assert (copied.remote_topic, copied.counters.records) == (f"{flow.source.alias}.{TOPIC}", 1)
    assert len(read_all(lab.target.client_settings(), copied.remote_topic)[0]) == 1
    now = datetime.now(UTC)
    backfill = lab.run(flow, since=now - timedelta(hours=1), until=now)
    assert (backfill.exit_code, backfill.records) == (ExitCode.DONE, 0)
