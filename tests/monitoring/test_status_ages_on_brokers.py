"""Ages of what is not copied: known, not known, and never waited for where no record is."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.waiting import NEVER_SECONDS
from tools.kafka import SandboxCluster

from ferry.clusters.partitions import TopicPartition
from ferry.config import load_config
from ferry.copying.request import RunRequest
from ferry.monitoring import status
from ferry.pipeline.plan import plan_run
from ferry.recovery.not_copied import not_copied, source_ends

pytestmark = pytest.mark.brokers

HOUR_MS = 3_600_000


def test_only_a_record_with_a_time_has_an_age(
    config_file: Callable[..., Path], topic_factory: Callable[..., str], source_cluster: SandboxCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topic_factory(source_cluster, partitions=4)
    now = round(time.time() * 1000)
    plain = Producer(source_cluster.client_settings())
    for partition, moment in ((0, now - HOUR_MS), (1, -1), (2, now + HOUR_MS)):
        plain.produce(topic, b"x", partition=partition, timestamp=moment)
    assert plain.flush(30) == 0
    aborting = Producer({**source_cluster.client_settings(), "transactional.id": f"aborts-{topic}"})
    aborting.init_transactions(30)
    aborting.begin_transaction()
    aborting.produce(topic, b"x", partition=3)
    aborting.flush(30)
    aborting.abort_transaction(30)

    monkeypatch.setattr(status, "READ_SECONDS", NEVER_SECONDS)  # what waits for records that never come takes that long
    began = time.monotonic()
    ages = status.first_ages(
        load_config(config_file(f"A->B.topics = {topic}")).flows[0], {TopicPartition(topic, number): 0 for number in range(4)}
    )
    assert time.monotonic() - began < NEVER_SECONDS
    assert 3_600 <= ages[TopicPartition(topic, 0)] < 3_700
    assert [ages[TopicPartition(topic, number)] for number in (1, 2, 3)] == [-1.0, 0.0, -1.0]


def test_an_application_may_call_its_topic_heartbeats(
    config_file: Callable[..., Path], topic_factory: Callable[..., str], source_cluster: SandboxCluster, produce: Callable[..., None]
) -> None:
    """Only what the clusters of the file beat is left out of lag, alerts, rehearsals and backfills."""
    name = f"x{secrets.token_hex(4)}.heartbeats"
    topic_factory(source_cluster, name=name)
    produce(source_cluster, name, [(0, b"key", b"value")] * 500)
    flow = load_config(config_file(f"A->B.topics = {name}")).flows[0]
    beats = f"{flow.target.alias}.{name}"
    found = status.flow_status(flow)
    assert (found.lag.records, [entry.heartbeats for entry in found.partitions]) == (500, [False])
    planned = plan_run(flow, RunRequest(flow.name, "look"))
    assert planned.needs_copy
    assert [entry.offsets for entry in not_copied(planned, flow)] == [500]
    assert source_ends(flow) == {TopicPartition(name, 0): 500}
    assert [flow.is_heartbeats(topic) for topic in ("heartbeats", f"{flow.source.alias}.heartbeats", name, beats)] == [
        True,
        True,
        False,
        False,
    ]
