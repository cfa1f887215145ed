"""What the demo's flow has been through before its user looks at it: several runs, a gap that a backfill closed, and one for the user.

Two topics are copied from their middle on, as if they had been included late: their older halves stand in no receipt. `clicks` gets its
half by a run over just that time, as the page's button starts one; `orders-none` keeps its gap. All this happens once, before the first
copy: a seed moves positions, and moving them back would copy records twice.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka.admin import AdminClient
from tools.kafka import compare_topics, read_all
from tools.kafka.reading import RecordSeen, partition_bounds

from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow, load_config
from ferry.copying.request import RunRequest
from ferry.ledger.open_flow import open_flow
from ferry.migration.positions import GivenPositions
from ferry.migration.seeding import seed
from ferry.page.coverage_reading import read_coverage_of
from ferry.policy.naming import HEARTBEATS, ledger_topic
from ferry.sandbox.pair import SandboxStatus

BACKFILLED, OPEN = "clicks", "orders-none"
LATE = (BACKFILLED, OPEN)
ANSWER_SECONDS = 15.0


def demo_flow(config: Path) -> Flow:
    """The demo's only flow."""
    return load_config(config).flow("A->B")


def is_new(clusters: SandboxStatus) -> bool:
    """Whether nothing was ever copied."""
    return ledger_topic("A") not in AdminClient({"bootstrap.servers": clusters.target}).list_topics(timeout=ANSWER_SECONDS).topics


def include_late(flow: Flow, clusters: SandboxStatus) -> None:
    """Have the late topics begin in the middle of what they hold now."""
    positions = {
        TopicPartition(topic, partition): (start + end) // 2
        for topic in LATE
        for partition, (start, end) in partition_bounds(clusters.source, topic).items()
    }
    with open_flow(flow) as opened:
        seed(
            opened, RunRequest(flow.name, "demo-late-topics"), GivenPositions("the demo includes this topic late", positions, binding=True)
        )


def missing_interval(flow: Flow, topic: str) -> tuple[datetime, datetime]:
    """The time `[from, until)` of all records of the topic that no receipt covers, as the page's coverage view tells it."""
    missing = read_coverage_of(flow, topic)["missing"]
    moments = (min(entry["from_ms"] for entry in missing), max(entry["until_ms"] for entry in missing))
    first, last = (datetime.fromtimestamp(moment / 1000, UTC) for moment in moments)
    return first, last


def differences(clusters: SandboxStatus) -> tuple[list[str], int, int]:
    """How both sides differ, topics and records compared. Backfilled records lie behind newer ones, so their topic is compared as a set."""
    listed = AdminClient({"bootstrap.servers": clusters.source}).list_topics(timeout=ANSWER_SECONDS).topics
    # A run's own heartbeat is copied by the next one.
    ordered = [name for name in listed if not name.startswith("__") and name not in {HEARTBEATS, *LATE}]
    found = compare_topics(clusters.source, clusters.target, {name: f"A.{name}" for name in ordered})
    told, records = [str(entry) for entry in found.differences], found.records
    for topic in LATE:
        here, there = (_contents(read_all(*side)) for side in ((clusters.source, topic), (clusters.target, f"A.{topic}")))
        records += there.total()
        if there - here:
            told.append(f"{topic}: {(there - here).total()} records that the source does not have")
        if topic == BACKFILLED and here - there:
            told.append(f"{topic}: {(here - there).total()} records are missing")
    return told, len(ordered) + len(LATE), records


def _contents(partitions: list[list[RecordSeen]]) -> Counter[tuple[object, ...]]:
    return Counter((number, *record.content) for number, records in enumerate(partitions) for record in records)
