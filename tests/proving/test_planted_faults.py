"""Each fault that a copier could make is found, named as what it is, and nothing else is."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tests.proving.miscopying import change, double, miscopy, remove, retime, swap

from ferry.config import Flow
from ferry.errors import CopiesDiffer, ExitCode
from ferry.proving.range_runner import InlineRangeRunner
from ferry.proving.report import VerifyReport
from ferry.proving.request import VerifyRequest
from ferry.proving.verifying import verify
from ferry.reporting.run_report import RunReport
from ferry.sandbox import SandboxCluster

pytestmark = pytest.mark.brokers

RECORDS = 400
FAULTS = {
    0: remove(7),
    1: double(9),
    2: change(11, b"value-11-", b"value-1X-"),
    3: swap(20, 21),
    4: swap(5, 90),
    5: change(30, b"header-30-", b"header-3X-"),
    6: retime(33),
    7: remove(RECORDS - 1),
    8: double(RECORDS - 1),
    9: change(12, b"key-12-", b"key-1X-"),
}
FOREIGN_BETWEEN, FOREIGN_BEHIND, CLEAN = 10, 11, 12
EXPECTED = {
    0: [("missing", 7, -1)],
    1: [("extra", -1, 10)],
    2: [("altered", 11, 11, "value")],
    3: [("reordered", 21, 20), ("reordered", 20, 21)],
    4: [("reordered", 90, 5), ("reordered", 5, 90)],
    5: [("altered", 30, 30, "headers")],
    6: [("altered", 33, 33, "timestamp")],
    7: [("missing", RECORDS - 1, -1)],
    8: [("extra", -1, RECORDS)],
    9: [("altered", 12, 12, "key")],
    FOREIGN_BETWEEN: [("extra", -1, RECORDS + 1)],
    FOREIGN_BEHIND: [("extra", -1, 2 * RECORDS + 2)],
}

SHAPES: dict[str, dict[str, object]] = {
    "forward-lz4": {"compression.type": "lz4", "batch.num.messages": RECORDS},
    "forward": {"compression.type": "none", "batch.num.messages": RECORDS},
    "reframe": {"compression.type": "none", "batch.num.messages": 3},
    "reframe-zstd": {"compression.type": "zstd", "batch.num.messages": 20},
}


def write(cluster: SandboxCluster, topic: str, **settings: object) -> None:
    """Each partition's records in one call, so that large batches are full."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 200, "enable.idempotence": True, **settings})
    for partition in range(CLEAN + 1):
        for number in range(RECORDS):
            producer.produce(
                topic,
                key=f"key-{number}-".encode(),
                value=f"value-{number}-".encode() + b"x" * (number % 60),
                headers=[("h", f"header-{number}-".encode()), ("h", None)],
                timestamp=1_700_000_000_000 + number,
                partition=partition,
            )
    assert producer.flush(60) == 0


def append(cluster: SandboxCluster, topic: str, partition: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(topic, b"stranger", partition=partition)
    assert producer.flush(30) == 0


def proof(flow: Flow, **options: object) -> VerifyReport:
    return verify(flow, VerifyRequest(flow.name, secrets.token_hex(4), **options), InlineRangeRunner(), lambda _: None)  # type: ignore[arg-type]


def found(report: VerifyReport, topic: str) -> dict[int, list[tuple[object, ...]]]:
    named: dict[int, list[tuple[object, ...]]] = {}
    for entry in report.differences:
        fields = (entry.detail,) if entry.kind == "altered" else ()
        if entry.topic == topic:
            named.setdefault(entry.partition, []).append((entry.kind.value, entry.upstream_offset, entry.downstream_offset, *fields))
    return named


def test_each_fault_is_found_and_nothing_else(
    flow_factory: Callable[..., Flow],
    topic_factory: Callable[..., str],
    run_flow: Callable[..., RunReport],
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    copy_only: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = {name: topic_factory(source_cluster, partitions=CLEAN + 1) for name in SHAPES}
    flow = flow_factory(f"A->B.topics = {','.join(topics.values())}", *copy_only)
    for name, topic in topics.items():
        write(source_cluster, topic, **SHAPES[name])
    struck = miscopy(monkeypatch, {(topic, partition): fault for topic in topics.values() for partition, fault in FAULTS.items()})
    first = run_flow(flow)
    assert len(struck) == len(FAULTS) * len(SHAPES)
    forwarded = {entry.topic for entry in first.partitions if entry.forwarded}
    reframed = {entry.topic for entry in first.partitions if entry.reframed}
    assert (forwarded, reframed) == ({topics["forward-lz4"], topics["forward"]}, {topics["reframe"], topics["reframe-zstd"]})
    for name, topic in topics.items():
        append(target_cluster, f"{flow.source.alias}.{topic}", FOREIGN_BETWEEN)
        write(source_cluster, topic, **SHAPES[name])
    run_flow(flow)
    for topic in topics.values():
        append(target_cluster, f"{flow.source.alias}.{topic}", FOREIGN_BEHIND)
    report = proof(flow)
    for topic in topics.values():
        assert found(report, topic) == EXPECTED
    assert report.differences_total == len(SHAPES) * sum(len(entries) for entries in EXPECTED.values())
    assert report.exit_code is ExitCode.PARTLY_FAILED
    with pytest.raises(CopiesDiffer, match="upstream 7: missing"):
        report.raise_for_outcome()
    assert report.not_covered == ()
    alone = proof(flow, partitions=(CLEAN,))
    assert (alone.equal, alone.records) == (True, 2 * RECORDS * len(SHAPES))
