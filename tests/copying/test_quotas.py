"""Quotas of brokers and a bandwidth budget of one's own slow a copy down and do nothing else."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest
from tests.conftest import Lab
from tools.kafka import SandboxCluster

from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.event_loop import EventLoop
from ferry.config import ClientRole, Cluster
from ferry.errors import ExitCode

pytestmark = pytest.mark.brokers

RECORD_BYTES = 10_000


def fill(cluster: SandboxCluster, topic: str, records: int, partitions: int) -> None:
    """Records that do not compress."""
    producer = Producer({**cluster.client_settings(), "linger.ms": 20, "batch.size": 100_000})
    for number in range(records):
        producer.produce(topic, value=os.urandom(RECORD_BYTES), partition=number % partitions)
    assert producer.flush(60) == 0


def set_quotas(cluster: Cluster, client_id: str, quotas: Mapping[str, float]) -> None:
    loop = EventLoop()
    connection = ClusterConnection(loop, cluster, ClientRole.ADMIN)
    entry = AlterClientQuotasRequest.EntryData

    async def ask() -> None:
        await connection.open()
        wanted = entry(
            entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
            ops=[entry.OpData(key=key, value=value, remove=False) for key, value in quotas.items()],
        )
        answer = await connection.send(AlterClientQuotasRequest(entries=[wanted], validate_only=False))
        assert [found.error_code for found in answer.entries] == [0]

    try:
        loop.run(ask)
    finally:
        connection.close()
        loop.close()


@pytest.mark.long
def test_a_whole_copy_under_small_quotas_on_both_sides(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """No time-out, no recovery, no second try: 2 MB where brokers allow 0.1 MB a second, of which the first ten seconds' worth at once."""
    topic = lab.topic(lab.source, partitions=3)
    fill(lab.source, topic, 200, 3)
    client = f"limited-{topic}"
    lines = (
        f"A->B.topics = {topic}",
        f"A.consumer.client.id = {client}",
        f"B.producer.client.id = {client}",
        "ferry.lanes = 1",
        *lab.copy_only,
    )
    flow = lab.flow(*lines)
    set_quotas(flow.source, client, {"consumer_byte_rate": 150_000.0})
    set_quotas(flow.target, client, {"producer_byte_rate": 100_000.0, "request_percentage": 20.0})
    # Commands that ran in this process before leave the client's logger silent.
    with caplog.at_level(logging.WARNING), caplog.at_level(logging.WARNING, "kafka"):
        started = time.monotonic()
        report = lab.run(flow)
        seconds = time.monotonic() - started
    assert (report.exit_code, report.records) == (ExitCode.DONE, 200)
    throttled = [record.message for record in caplog.records if "throttled by broker" in record.message]
    assert [kind for kind in ("Fetch", "BatchesAnswer") if not any(kind in message for message in throttled)] == []
    assert [record.message for record in caplog.records if record.name.startswith("ferry") or "timed out" in record.message] == []
    assert seconds > 5.0  # (2.0 - 1.1) MB / 0.1 MB/s, less what the quota's samples round away


@pytest.mark.long
def test_the_budget_of_a_flow_is_used_and_kept_within_a_tenth(lab: Lab) -> None:
    """As a client sees the log of the target grow, while transactions of one second go on ending in time."""
    topic = lab.topic(lab.source)
    fill(lab.source, topic, 600, 1)
    flow = lab.flow(f"A->B.topics = {topic}", "ferry.max.rate.mb = 1", "ferry.transaction.seconds = 1", *lab.copy_only)
    remote = TopicPartition(f"{flow.source.alias}.{topic}", 0)
    seen: list[tuple[float, int]] = []
    ended = threading.Event()

    def watch() -> None:
        client = AdminClient(lab.target.client_settings())
        while not ended.wait(0.1):
            try:
                offset = client.list_offsets({remote: OffsetSpec.latest()})[remote].result(10).offset
            except Exception:  # noqa: BLE001, S112 - it does not exist yet
                continue
            seen.append((time.monotonic(), offset))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        report = lab.run(flow)
    finally:
        ended.set()
        watcher.join()
    assert (report.exit_code, report.records) == (ExitCode.DONE, 600)
    transactions = report.partitions[0].counters.transactions
    assert transactions >= 4
    middle = [(moment, offset) for moment, offset in seen if 100 <= offset <= 550]
    (first, low), (last, high) = middle[0], middle[-1]
    rate = (high - low) * RECORD_BYTES / (last - first)
    # A machine that is busy with other things may not get there; it must never be exceeded.
    assert 0.5e6 < rate < 1.1e6, f"{rate:,.0f} bytes/s over {last - first:.1f} s"
