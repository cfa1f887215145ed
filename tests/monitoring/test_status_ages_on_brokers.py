"""Ages of what is not copied: known, not known, and never waited for where no record is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.waiting import NEVER_SECONDS
from tools.kafka import SandboxCluster

from ferry.clusters.partitions import TopicPartition
from ferry.config import load_config
from ferry.monitoring import status

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
