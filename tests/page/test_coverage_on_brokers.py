"""What is missing is found exactly, and a run over its interval closes it: broken clocks, aborted transactions, holes of compaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.conftest import Lab
from tests.opened import assemble_report, copy_run, plan_run
from tests.waiting import until
from tools.kafka import SandboxCluster, read_all
from tools.kafka.topics import delete_topics

from ferry.config import Flow
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.ledger.run_report import RunReport
from ferry.page.coverage_reading import read_coverage_of
from ferry.page.flow_reading import read_overview
from ferry.page.overview import overview_from

pytestmark = pytest.mark.brokers

NOON = 1_790_000_000_000
PLAIN, BROKEN_CLOCK, TRANSACTIONS, MARKERS_ONLY, HOLES, NOTHING = range(6)
COMPACTING = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "100",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "100",
    "retention.ms": "-1",  # the times of the records are long ago
}


def configure(cluster: SandboxCluster, kind: ResourceType, name: str, **entries: str) -> None:
    change = [ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET) for key, value in entries.items()]
    resource = ConfigResource(kind, name, incremental_configs=change)
    client = AdminClient(cluster.client_settings())
    client.incremental_alter_configs([resource])[resource].result(30)


@contextmanager
def quick_cleaner(cluster: SandboxCluster) -> Iterator[None]:
    configure(cluster, ResourceType.BROKER, "1", log_cleaner_backoff_ms="100")
    try:
        yield
    finally:
        configure(cluster, ResourceType.BROKER, "1", log_cleaner_backoff_ms="15000")


def fill(cluster: SandboxCluster, topic: str, partition: int, times: list[int], *, key: bytes | None = None, first: int = 0) -> None:
    producer = Producer({**cluster.client_settings(), "batch.num.messages": 7, "linger.ms": 5})
    for number, moment in enumerate(times, first):
        value = f"{partition}-{number}".encode()
        producer.produce(topic, value, key or value, partition, timestamp=moment)
    assert producer.flush(30) == 0


def transaction(cluster: SandboxCluster, topic: str, partition: int, times: list[int], *, commit: bool) -> None:
    producer = Producer({**cluster.client_settings(), "transactional.id": f"{topic}-{partition}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number, moment in enumerate(times):
        value = f"{'kept' if commit else 'dropped'}-{moment}-{number}".encode()
        producer.produce(topic, value, value, partition, timestamp=moment)
    assert producer.flush(30) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)(30)


def until_compacted(cluster: SandboxCluster, topic: str, partition: int, least: int) -> None:
    until(lambda: not (found := read_all(cluster.bootstrap, topic)[partition]) or found[0].offset >= least)


def history(cluster: SandboxCluster, topic: str) -> None:
    """Before the flow begins. Only one partition is compacted: compaction may keep a leader from finding records by their time."""
    for begin in (0, 20, 40):
        # So much later by its time, the next record begins a segment: the one before can be cleaned.
        fill(cluster, topic, HOLES, [NOON + 1000 * begin + number for number in range(20)], key=b"same", first=begin)
    until_compacted(cluster, topic, HOLES, 39)
    configure(cluster, ResourceType.TOPIC, topic, cleanup_policy="delete")
    fill(cluster, topic, PLAIN, [NOON + 1000 * number for number in range(50)])
    # Late, early, and one from the future in the middle.
    fill(cluster, topic, BROKEN_CLOCK, [NOON + (37 * number) % 1000 + (50_000 if number == 20 else 0) for number in range(60)])
    transaction(cluster, topic, TRANSACTIONS, [NOON + 1, NOON + 900_000], commit=False)
    transaction(cluster, topic, TRANSACTIONS, [NOON + 5, NOON + 3], commit=True)
    transaction(cluster, topic, TRANSACTIONS, [NOON + 7], commit=False)
    transaction(cluster, topic, MARKERS_ONLY, [NOON + 1, NOON + 2], commit=False)


def close(flow: Flow, topic: str, gap: dict[str, Any], number: int) -> RunReport:
    """As a DAG run with this data interval and bound=interval."""
    since, until = (datetime.fromtimestamp(gap[name] / 1000, UTC) for name in ("from_ms", "until_ms"))
    request = RunRequest(flow.name, f"close-{number}", since=since, until=until, backfill=True, topics=(topic,))
    planned = plan_run(flow, request)
    assert planned.needs_copy, f"{gap} {planned.partitions}"
    assert not planned.needs_preparation
    copy_run(flow, request, InlineLaneRunner(), lambda _: None)
    return assemble_report(flow, request)


def coverage(flow: Flow, topic: str) -> dict[str, Any]:
    return read_coverage_of(flow, topic)


@pytest.mark.long
def test_a_run_over_the_interval_closes_what_is_missing(lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=6, config=COMPACTING)
    with quick_cleaner(lab.source):
        history(lab.source, topic)
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.start = latest", *lab.copy_only)
    lab.run(flow)
    for partition in (PLAIN, BROKEN_CLOCK, TRANSACTIONS, HOLES, NOTHING):
        fill(lab.source, topic, partition, [NOON + 10_000_000 + number for number in range(5)], first=1000)
    lab.run(flow)

    seen = coverage(flow, topic)
    missing = {gap["partition"]: gap for gap in seen["missing"]}
    assert {partition: (gap["start"], gap["end"]) for partition, gap in missing.items()} == {
        PLAIN: (0, 50),
        BROKEN_CLOCK: (0, 60),
        TRANSACTIONS: (3, 8),
        HOLES: (39, 60),
    }
    assert len(seen["missing"]) == 4
    assert not [gap for gap in seen["missing"] if gap["obstacle"]]
    assert (missing[PLAIN]["from_ms"], missing[PLAIN]["until_ms"]) == (NOON, NOON + 49_001)
    assert missing[BROKEN_CLOCK]["until_ms"] == NOON + 50_000 + (37 * 20) % 1000 + 1
    kinds = {entry["partition"]: [span["kind"] for span in entry["ranges"]] for entry in seen["partitions"]}
    assert kinds[PLAIN] == ["missing", "seed", "copied"]
    assert kinds[MARKERS_ONLY] == ["seed"]
    assert kinds[NOTHING] == ["seed", "copied"]

    # Each alone: what a run over one range's interval leaves is the others'.
    for number, partition in enumerate((BROKEN_CLOCK, TRANSACTIONS, HOLES, PLAIN)):
        left = {gap["partition"]: gap for gap in coverage(flow, topic)["missing"]}
        if partition in left:
            assert not close(flow, topic, left[partition], number).problems()
            assert partition not in {gap["partition"] for gap in coverage(flow, topic)["missing"]}
    seen = coverage(flow, topic)
    assert seen["missing"] == []
    assert "missing" not in {span["kind"] for entry in seen["partitions"] for span in entry["ranges"]}
    assert "backfilled" in {span["kind"] for entry in seen["partitions"] for span in entry["ranges"]}
    both = (read_all(lab.source.bootstrap, topic), read_all(lab.target.bootstrap, seen["remote_topic"]))
    here, there = ([Counter(record.value for record in partition) for partition in side] for side in both)
    assert here == there
    assert not overview_from(json.loads(json.dumps(read_overview(flow)))).totals["lag_records"]


def test_the_overview_names_the_limits_that_the_flow_breaks(lab: Lab) -> None:
    topic = lab.topic(lab.source)
    lab.produce(lab.source, topic, [(0, None, b"x")] * 11)
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.alert.lag.records = 10", *lab.copy_only)
    (broken,) = overview_from(json.loads(json.dumps(read_overview(flow)))).health.broken
    assert (broken.key, broken.topic, broken.value, broken.limit) == ("ferry.alert.lag.records", topic, 11, 10)


def test_a_compacted_remote_topic_says_why_its_gap_stays(lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=1, config={"cleanup.policy": "compact"})
    fill(lab.source, topic, 0, [NOON, NOON + 1], key=b"k")
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.start = latest", *lab.copy_only)
    lab.run(flow)
    (gap,) = coverage(flow, topic)["missing"]
    assert (gap["start"], gap["end"]) == (0, 2)
    assert "compacted" in gap["obstacle"]

    # It is deleted at the source: what the ledger knows stays visible, and nothing of it can be missing.
    delete_topics(lab.source.client_settings(), topic)
    until(lambda: not coverage(flow, topic)["missing"])
    seen = coverage(flow, topic)
    assert seen["note"]
    assert [span["kind"] for entry in seen["partitions"] for span in entry["ranges"]] == ["seed"]
