"""What a verify makes of flows whose target is not simply a copy: handlers, both directions under one name, a source that began anew."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from ferry.config import Flow, load_config
from ferry.errors import ExitCode
from ferry.proving import reasons
from ferry.proving.range_runner import InlineRangeRunner
from ferry.proving.report import VerifyReport
from ferry.proving.request import VerifyRequest
from ferry.proving.verifying import verify
from ferry.reporting.run_report import RunReport
from ferry.sandbox import SandboxCluster

pytestmark = pytest.mark.brokers

HANDLER = """
from dataclasses import replace

class Handler:
    def handle(self, record):
        number = int(record.value)
        if number % 4 == 0:
            return []
        return [replace(record, value=b"changed")] * (3 if number % 4 == 1 else 1)
"""


def proof(flow: Flow) -> VerifyReport:
    return verify(flow, VerifyRequest(flow.name, secrets.token_hex(4)), InlineRangeRunner(), lambda _: None)


def told(report: VerifyReport) -> dict[tuple[str, str], tuple[int, int]]:
    return {(entry.reason.split(":")[0], entry.side.value): (entry.start, entry.end) for entry in report.not_covered}


def named(report: VerifyReport) -> list[tuple[str, int, int]]:
    return [(entry.kind.value, entry.upstream_offset, entry.downstream_offset) for entry in report.differences]


def fill(cluster: SandboxCluster, topic: str, count: int, *, first: int = 0) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "batch.num.messages": 7, "linger.ms": 5})
    for number in range(first, first + count):
        producer.produce(topic, f"{number}".encode(), partition=0)
    assert producer.flush(30) == 0


def test_a_message_handler_leaves_presence_to_compare(
    flow_factory: Callable[..., Flow],
    topic_factory: Callable[..., str],
    run_flow: Callable[..., RunReport],
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    copy_only: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = f"handler_{secrets.token_hex(4)}"
    (tmp_path / f"{module}.py").write_text(HANDLER)
    monkeypatch.syspath_prepend(str(tmp_path))
    topic = topic_factory(source_cluster)
    flow = flow_factory(f"A->B.topics = {topic}", f"A->B.ferry.message.handler = {module}:Handler", *copy_only)
    fill(source_cluster, topic, 80)
    assert run_flow(flow).records == 20 * 3 + 40
    report = proof(flow)
    assert (report.equal, report.records) == (True, 60)
    assert told(report) == {(reasons.HANDLED.split(":")[0], "source"): (1, 80)}
    fill(target_cluster, f"{flow.source.alias}.{topic}", 1)
    assert named(proof(flow)) == [("extra", -1, 101)]


def test_both_directions_under_one_name(
    config_file: Callable[..., Path],
    topic_factory: Callable[..., str],
    run_flow: Callable[..., RunReport],
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    copy_only: tuple[str, ...],
) -> None:
    topic = topic_factory(source_cluster)
    topic_factory(target_cluster, name=topic)
    fill(source_cluster, topic, 40)
    fill(target_cluster, topic, 30, first=1_000)
    lines = ("B->A.enabled = true", "replication.policy.class = IdentityReplicationPolicy", "A->B.ferry.on.unexplained = local")
    there, back = load_config(config_file(*lines, f"topics = {topic}", *copy_only)).flows
    for flow in (there, back):
        assert run_flow(flow).exit_code is ExitCode.DONE
    fill(source_cluster, topic, 10, first=40)
    fill(target_cluster, topic, 10, first=2_000)
    for flow in (there, back, there):
        assert run_flow(flow).exit_code is ExitCode.DONE
    for flow, count in ((there, 50), (back, 40)):
        report = proof(flow)
        assert (report.equal, report.records) == (True, count), named(report)
        assert ("came from the target by the flow in the other direction", "source") in told(report)
        assert (reasons.LOCAL.split(":")[0], "target") in told(report)


def test_a_source_topic_that_began_anew(
    flow_factory: Callable[..., Flow],
    topic_factory: Callable[..., str],
    run_flow: Callable[..., RunReport],
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    copy_only: tuple[str, ...],
) -> None:
    topic = topic_factory(source_cluster)
    flow = flow_factory(f"A->B.topics = {topic}", "A->B.ferry.on.recreate = restart", *copy_only)
    fill(source_cluster, topic, 50)
    run_flow(flow)
    client = AdminClient(source_cluster.client_settings())
    client.delete_topics([topic])[topic].result(30)
    deadline = time.monotonic() + 30
    while client.list_topics(topic, timeout=10).topics[topic].error != KafkaError.UNKNOWN_TOPIC_OR_PART:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    topic_factory(source_cluster, name=topic)
    fill(source_cluster, topic, 20, first=500)
    before = proof(flow)  # the next run has not seen it yet
    assert (before.differences, before.records) == ((), 0)
    run_flow(flow)
    after = proof(flow)
    assert (after.equal, after.records) == (True, 20)
    assert told(after) == {(reasons.OTHER_SOURCE, "target"): (0, 50)}
    fill(target_cluster, f"{flow.source.alias}.{topic}", 1)
    assert named(proof(flow)) == [("extra", -1, 72)]
