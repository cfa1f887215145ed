"""Remote topics on brokers: created with what their sources have, grown, never narrowed, never brought back by accident."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    ResourceType,
)
from tests.conftest import Lab
from tests.opened import plan_run, prepare_run, sync_configs, sync_topics
from tools.kafka import SandboxCluster, compare_topics
from tools.kafka.topics import delete_topics

from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport
from ferry.ledger.sync_outcome import Change

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
TopicFactory = Callable[..., str]
RunFlow = Callable[..., RunReport]


def test_topics_are_created_and_grown(lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=2, config={"retention.ms": "86400000", "min.insync.replicas": "1"})
    flow = lab.flow(f"A->B.topics = {topic}")
    remote = f"{flow.source.alias}.{topic}"
    reason = f"{flow.source.alias} has topic {topic}"
    creation = Change(f"topic {remote}", "create", "2 partitions, 1 replica, retention.ms=86400000", reason)

    planned = sync_topics(flow, dry_run=True)
    assert planned.changes == (creation,)
    assert (f"topic {remote} min.insync.replicas", "in the property config.properties.exclude: 1 at the source") in {
        (skipped.what, skipped.reason) for skipped in planned.skipped
    }
    assert remote not in AdminClient(lab.target.client_settings()).list_topics(timeout=10).topics

    assert sync_topics(flow).changes == (creation,)
    assert widths(lab.target, remote) == 2
    assert own_config(lab.target, remote) == {"retention.ms": "86400000"}
    assert sync_topics(flow).changes == ()

    widen(lab.source, topic, 3)
    (growth,) = sync_topics(flow).changes
    assert (growth.what, growth.action, growth.detail) == (f"topic {remote}", "grow", "partitions: 2 -> 3")
    assert widths(lab.target, remote) == 3

    widen(lab.target, remote, 5)
    settled = sync_topics(flow)
    assert settled.changes == settled.failed == ()
    (notice,) = settled.notices
    assert f"topic {remote} has 5 partitions, topic {topic} at the source 3" in notice
    assert widths(lab.target, remote) == 5


def test_a_refused_topic_does_not_stop_the_others(lab: Lab) -> None:
    fine = lab.topic(lab.source)
    long = lab.topic(lab.source, name=f"{fine}-{'x' * (249 - len(fine) - 1)}")  # no room for the alias in front
    flow = lab.flow(f"A->B.topics = {fine}.*")
    outcome = sync_topics(flow)
    assert [change.what for change in outcome.changes] == [f"topic {flow.source.alias}.{fine}"]
    (failure,) = outcome.failed
    assert (failure.what, failure.error) == (f"topic {flow.source.alias}.{long}", "ChangeRefused")
    assert f"cluster {flow.target.alias}" in failure.problem
    assert widths(lab.target, f"{flow.source.alias}.{fine}") == 1


def test_a_remote_topic_that_was_deleted_stays_deleted_until_the_flow_says_otherwise(lab: Lab) -> None:
    topic, never = lab.topic(lab.source), lab.topic(lab.source)
    flow = lab.flow(f"A->B.topics = {topic}")
    prepare_run(flow, RunRequest(flow.name, "run"), spark_follows=False)
    remote = f"{flow.source.alias}.{topic}"
    delete_topics(lab.target.client_settings(), remote)
    outcome = sync_topics(flow)
    assert outcome.changes == ()
    assert [skipped.reason for skipped in outcome.skipped if skipped.what == f"topic {remote}"] == [
        "it was deleted after it was copied to; ferry.on.target.recreate=restart creates it again"
    ]
    left = {skipped.what: skipped.reason for skipped in sync_configs(lab.flow(f"A->B.topics = {topic},{never}")).skipped}
    assert left[f"topic {remote}"] == "it was deleted after it was copied to"
    assert left[f"topic {flow.source.alias}.{never}"] == "it does not exist"
    again = lab.flow(f"A->B.topics = {topic}", "ferry.on.target.recreate = restart")
    assert [change.what for change in sync_topics(again).changes] == [f"topic {remote}"]


def test_a_remote_topic_that_compresses_again_holds_the_same_records(lab: Lab) -> None:
    """compression.type is copied like any config: the target's broker rewrites the batches that were written before it was set."""
    prefix = lab.topic(lab.source)
    codecs = ("gzip", "uncompressed", "zstd")
    records = [(0, b"%d" % number, b"value" * 20) for number in range(400)]
    for codec in codecs:
        topic = lab.topic(lab.source, name=f"{prefix}-{codec}")
        lab.produce(lab.source, topic, records[:200], **{"compression.type": "lz4"})
        lab.produce(lab.source, topic, records[200:], **{"compression.type": "lz4", "batch.num.messages": 7})
        entry = ConfigEntry("compression.type", codec, incremental_operation=AlterConfigOpType.SET)
        client = AdminClient(lab.source.client_settings())
        for future in client.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]).values():
            future.result(30)
    flow = lab.flow(f"A->B.topics = {prefix}-.*")
    report = lab.run(flow)
    assert (report.exit_code, report.records) == (ExitCode.DONE, 1200)
    pairs = {f"{prefix}-{codec}": f"{flow.source.alias}.{prefix}-{codec}" for codec in codecs}
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, pairs)
    assert (found.equal, found.records) == (True, 1200), found.differences
    assert [own_config(lab.target, remote)["compression.type"] for remote in pairs.values()] == list(codecs)


def widths(cluster: SandboxCluster, topic: str) -> int:
    client = AdminClient(cluster.client_settings())
    return len(client.list_topics(topic, timeout=10).topics[topic].partitions)


def widen(cluster: SandboxCluster, topic: str, partitions: int) -> None:
    client = AdminClient(cluster.client_settings())
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)


def own_config(cluster: SandboxCluster, topic: str) -> dict[str, str | None]:
    client, resource = AdminClient(cluster.client_settings()), ConfigResource(ResourceType.TOPIC, topic)
    entries = client.describe_configs([resource])[resource].result(30)
    return {name: entry.value for name, entry in entries.items() if ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG}


def test_plan_and_report_say_why_a_remote_topic_is_not_created(lab: Lab) -> None:
    """Names that are too long, or that the target takes for another topic's."""
    mark = secrets.token_hex(4)
    topics = {"long": f"{mark}-{'x' * 235}", "alike": f"{mark}.y", "good": f"{mark}-good"}
    for topic in topics.values():
        lab.topic(lab.source, name=topic)
        lab.produce(lab.source, topic, [(0, None, b"x")])
    flow = lab.flow(f"A->B.topics = {mark}.*", *lab.copy_only)
    lab.topic(lab.target, name=f"{flow.source.alias}.{mark}_y")
    reasons = {"long": "length 249", "alike": f"collides with existing topic.*{mark}_y"}
    planned = plan_run(flow, RunRequest(flow.name, "plan"))
    report = lab.run(flow)
    for failed in (planned.failed, report.failed):
        assert {(failure.topic, failure.error) for failure in failed} == {(topics[kind], "TargetMissing") for kind in reasons}
        for kind, reason in reasons.items():
            (problem,) = (failure.problem for failure in failed if failure.topic == topics[kind])
            assert re.search(reason, problem)
            assert "grant" not in problem
    assert (report.exit_code, report.records) == (ExitCode.PARTLY_FAILED, 1)
    assert {failure.what: failure.error for failure in sync_topics(flow, dry_run=True).failed} == {
        f"topic {flow.source.alias}.{topics[kind]}": "ChangeRefused" for kind in reasons
    }
