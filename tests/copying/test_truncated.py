"""A source broker that comes back with a shorter log, as after an unclean leader election: named, never copied over, the rest goes on."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from ferry.config import Flow
from ferry.copying.pipeline import plan_run
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.reporting.run_report import RunReport
from ferry.reporting.status import flow_status
from ferry.sandbox import SandboxCluster, read_all

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
NEXT = RunRequest("", "next")
CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown")


def produce_in_batches(cluster: SandboxCluster, topic: str, partition: int, values: range) -> None:
    """One batch per record, so that a log can be cut anywhere."""
    producer = Producer(cluster.client_settings())
    for number in values:
        producer.produce(topic, value=f"{number}".encode(), partition=partition)
        assert producer.flush(30) == 0


def cut_log(cluster: SandboxCluster, topic: str, partition: int, end: int) -> None:
    """Remove every batch from offset `end` on, while the broker is down, and what it remembers about them."""
    data = next(cluster.directory.rglob(f"{topic}-{partition}"))
    log = data / f"{0:020}.log"
    content, at = log.read_bytes(), 0
    while at < len(content):
        offset, length = struct.unpack_from(">qi", content, at)
        if offset >= end:
            break
        at += 12 + length
    log.write_bytes(content[:at])
    for pattern in ("*.index", "*.timeindex", "*.snapshot"):
        for path in data.glob(pattern):
            path.unlink()
    for name in CHECKPOINTS:
        (data.parent / name).unlink(missing_ok=True)


@pytest.fixture
def source(cluster_factory: Callable[..., SandboxCluster]) -> SandboxCluster:
    return cluster_factory()


@pytest.mark.parametrize("rewritten", [0, 5, 30], ids=["shorter", "shorter and rewritten", "rewritten beyond the position"])
def test_a_truncated_source_log_is_named_and_nothing_is_copied_over(
    rewritten: int,
    source: SandboxCluster,
    target_cluster: SandboxCluster,
    topic_factory: Callable[..., str],
    flow_factory: Callable[..., Flow],
    run_flow: RunFlow,
) -> None:
    topic = topic_factory(source, partitions=2)
    flow = flow_factory(f"A->B.topics = {topic}", source=source)
    for partition in (0, 1):
        produce_in_batches(source, topic, partition, range(20))
    assert run_flow(flow).records == 40
    source.stop()
    cut_log(source, topic, 0, 12)
    source.run()
    assert len(read_all(source.bootstrap, topic)[0]) == 12
    produce_in_batches(source, topic, 0, range(1_000, 1_000 + rewritten))
    produce_in_batches(source, topic, 1, range(20, 25))

    report = run_flow(flow)

    assert report.exit_code is ExitCode.PARTLY_FAILED
    assert [(failure.partition, failure.error) for failure in report.failed] == [(0, "SourceTruncated")]
    if rewritten < 8:  # a log that reaches beyond the position again is told by its leader epochs alone, which lanes look at
        looks = plan_run(flow, NEXT).failed, flow_status(flow).stopped
        found = [[(failure.partition, failure.error) for failure in look] for look in looks]
        assert found == [[(0, "SourceTruncated")]] * 2, "plan and status say what the next run will say"
    copied = read_all(target_cluster.bootstrap, f"{flow.source.alias}.{topic}")
    assert [[record.value for record in part] for part in copied] == [
        [f"{number}".encode() for number in range(20)],
        [f"{number}".encode() for number in range(25)],
    ]
