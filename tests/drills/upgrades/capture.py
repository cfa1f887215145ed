"""`python -m tests.drills.upgrades.capture VERSION`: what this Ferry writes into its internal topics, kept for the releases that come.

A real flow over real brokers: starts, copies, aborted data, a loss that was seen, a backfill, an operator's seed, syncs. Beside it what
such a flow does not show: a receipt of every kind with every field, and an ACL, as the codecs write them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.opened import acknowledge_losses, carry_out, copy_run, prepare_run, seed
from tools.kafka import SandboxCluster

from ferry.clusters.admin.acl_binding import AclBinding, AclPattern, AclResource
from ferry.config import Flow, load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.ledger.counters import Counters, MinMeanMax
from ferry.ledger.receipts import Receipt, ReceiptKind, encode_receipt
from ferry.ledger.state import OwnedAcl, encode_state
from ferry.migration.positions import read_seed_file
from ferry.syncs.names import SyncName

TOPICS = {"ledger": "mm2-ferry-ledger.A.internal", "state": "mm2-ferry-state.A.internal", "runs": "mm2-ferry-runs.A.internal"}
SECONDS = 60.0


def main(version: str) -> None:
    """Write `tests/drills/upgrades/VERSION.json`."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as running:
        directory = Path(scratch)
        source, target = (
            running.enter_context(SandboxCluster.start(directory / name, name, properties={"log.retention.ms": "-1"}))
            for name in ("a", "b")
        )
        _live(directory, source, target)
        topics = {kind: _records(target, topic) for kind, topic in TOPICS.items()}
    constructed = {"ledger": [_pair(encode_receipt(receipt)) for receipt in rare_receipts()], "state": [_pair(encode_state(owned_acl()))]}
    found = {"ferry": version, "topics": topics, "constructed": constructed}
    path = Path(__file__).with_name(f"{version}.json")
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def rare_receipts() -> list[Receipt]:
    """One of every kind, with every field in use."""
    blank = Receipt(ReceiptKind.COPIED, "t", 3, "id-s", "A.t", "id-r", 100, 200)
    full = {"downstream_end": 900, "runs": ((100, 700, 40), (150, 745, 50))}
    counted = {"records": 93, "bytes": 4096, "transactions": 2, "forwarded": 2, "reframed": 1, "handled": 4, "dropped": 5, "added": 3}
    delays = {"record_age_ms": MinMeanMax(5, 7.5, 10, 93), "replication_latency_ms": MinMeanMax(6, 8.5, 11, 93)}
    counters = Counters(**counted, from_target=7, **delays)  # type: ignore[arg-type]
    written = ((740, 745), (795, 900))
    moments = {"min_timestamp": 1_700_000_000_000, "max_timestamp": 1_700_000_100_000, "source_epoch": 6, "run_id": "run-1"}
    rich = Receipt(
        ReceiptKind.COPIED, "t", 3, "id-s", "A.t", "id-r", 100, 200, **full, counters=counters, written=written, **moments, series="run-0"
    )  # type: ignore[arg-type]
    kinds = [Receipt(kind, "t", 3, "id-s", "A.t", "id-r", 100, 200, run_id="run-2", reason=f"why {kind.value}") for kind in ReceiptKind]
    found = Receipt(ReceiptKind.SEED, "t", 3, "id-s", "A.t", "id-r", 300, 300, found=42, run_id="run-3", reason="operator", series="run-3")
    return [blank, rich, *kinds, found]


def owned_acl() -> OwnedAcl:
    """An ACL that Ferry created."""
    acl = ("User:reader", "*", "READ", "ALLOW")
    return OwnedAcl(
        AclBinding(AclResource.TOPIC, "A.t", AclPattern.LITERAL, *acl), (AclBinding(AclResource.TOPIC, "t", AclPattern.LITERAL, *acl),)
    )


def _live(directory: Path, source: SandboxCluster, target: SandboxCluster) -> None:
    admin = AdminClient(source.client_settings())
    for future in admin.create_topics([NewTopic("orders", 2, 1), NewTopic("lost", 1, 1)]).values():
        future.result(SECONDS)
    time.sleep(3)
    first = datetime.now(UTC)
    _produce(source, [("orders", partition, 10) for partition in (0, 1)], first - timedelta(days=3))
    _produce(source, [("lost", 0, 10)], first)
    late = _flow(directory, source, target, f"ferry.start = {(first - timedelta(days=1)).isoformat()}")
    _run(late, "run-1")
    _aborted(source, "orders", 0)
    _produce(source, [("orders", 0, 5), ("lost", 0, 10)], first)
    for future in admin.delete_records([TopicPartition("lost", 0, 15)]).values():
        future.result(SECONDS)
    _run(late, "run-2")
    acknowledge_losses(late)
    _run(late, "run-3", since=first - timedelta(days=4), until=first - timedelta(days=2))
    seeds = directory / "seeds.csv"
    seeds.write_text("topic,partition,position\norders,1,5\n", encoding="utf-8")
    seed(late, RunRequest(late.name, "seed-1"), read_seed_file(seeds))
    _run(late, "run-4")
    for name in (SyncName.TOPICS, SyncName.CONFIGS):
        carry_out(late, name, run_id="run-4")


def _run(flow: Flow, run_id: str, since: datetime | None = None, until: datetime | None = None) -> None:
    request = RunRequest(flow.name, run_id, until=until, since=since, backfill=since is not None)
    prepare_run(flow, request, spark_follows=True)
    copy_run(flow, request, InlineLaneRunner(), lambda _: None)


def _flow(directory: Path, source: SandboxCluster, target: SandboxCluster, *lines: str) -> Flow:
    path = directory / "mm2.properties"
    path.write_text(
        "\n".join(
            [
                "clusters = A, B",
                f"A.bootstrap.servers = {source.bootstrap}",
                f"B.bootstrap.servers = {target.bootstrap}",
                "A->B.enabled = true",
                "B->A.emit.heartbeats.enabled = false",
                "A->B.heartbeats.replication.enabled = false",
                "replication.factor = 1",
                "ferry.internal.topics.replication.factor = 1",
                *lines,
            ]
        )
        + "\n",
        encoding="latin-1",
    )
    return load_config(path).flows[0]


def _produce(cluster: SandboxCluster, wanted: list[tuple[str, int, int]], moment: datetime) -> None:
    producer = Producer({**cluster.client_settings(), "acks": "all"})
    for topic, partition, count in wanted:
        for _ in range(count):
            producer.produce(topic, b"value", b"key", partition, timestamp=round(moment.timestamp() * 1000))
    assert producer.flush(SECONDS) == 0


def _aborted(cluster: SandboxCluster, topic: str, partition: int) -> None:
    producer = Producer({**cluster.client_settings(), "transactional.id": "aborts"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"aborted", b"key", partition)
    producer.flush(SECONDS)
    producer.abort_transaction(SECONDS)


def _records(cluster: SandboxCluster, topic: str) -> list[dict[str, object]]:
    """Committed records in log order, partition by partition."""
    consumer = Consumer(
        {**cluster.client_settings(), "group.id": "capture", "isolation.level": "read_committed", "enable.partition.eof": True}
    )
    found: list[dict[str, object]] = []
    for partition in sorted(consumer.list_topics(topic, timeout=SECONDS).topics[topic].partitions):
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
            found.append({"partition": partition, **_pair((message.key() or b"", message.value()))})
    consumer.close()
    return found


def _pair(record: tuple[bytes, bytes | None]) -> dict[str, object]:
    key, value = record
    return {"key": key.decode(), "value": None if value is None else value.decode()}


if __name__ == "__main__":
    main(sys.argv[1])
