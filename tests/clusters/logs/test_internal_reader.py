"""A read of an internal topic goes on while records come, however slow its caller is, and ends with an error when nothing comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.opened import topic_reader
from tools.kafka import SandboxCluster

from ferry.clusters.logs import internal_reader
from ferry.clusters.logs.internal_reader import CONTACT_MILLISECONDS, InternalRecord
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.errors import ClusterUnreachable, FerryError

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
TopicFactory = Callable[..., str]
RECORDS = 10


def _filled(cluster: SandboxCluster, topic: str) -> None:
    producer = Producer(cluster.client_settings())
    for number in range(RECORDS):
        producer.produce(topic, b"v", str(number).encode(), partition=number % 2)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_the_callers_own_time_does_not_count(at_once: int, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = lab.topic(lab.target, partitions=2)
    _filled(lab.target, topic)
    passed = 0.0
    monkeypatch.setattr(internal_reader, "clock", SimpleNamespace(monotonic=lambda: time.monotonic() + passed))
    monkeypatch.setattr(internal_reader, "PARTITION_BYTES", at_once)
    found = set()
    with topic_reader(lab.flow().target) as reader:
        for record in reader.read(topic):
            found.add(record.key)
            passed += 1_000  # decoding it took the caller that long
    assert len(found) == RECORDS


def test_an_open_transaction_that_holds_the_end_back_is_named(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = lab.topic(lab.target, partitions=2)
    _filled(lab.target, topic)
    producer = Producer({**lab.target.client_settings(), "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=1)
    producer.flush(30)
    found = []
    with topic_reader(lab.flow().target) as reader:
        assert len(list(reader.read(topic, complete=False))) == RECORDS
        monkeypatch.setattr(internal_reader, "STALLED_SECONDS", 0.5)  # now that it is connected
        with pytest.raises(ClusterUnreachable, match=f"{topic}-1 could not be read to the end: nothing came for"):
            found.extend(record.key for record in reader.read(topic))
        assert len(found) == RECORDS
    producer.abort_transaction(30)


def test_first_records_are_found_behind_batches_of_any_size(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = lab.topic(lab.target, partitions=5)
    producer = Producer({**lab.target.client_settings(), "batch.num.messages": 1})
    for number in range(12):
        producer.produce(topic, b"v" * 3_000, str(number).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    producer = Producer({**lab.target.client_settings(), "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=3)
    producer.flush(30)
    monkeypatch.setattr(internal_reader, "FIRST_BYTES", 1_000)
    monkeypatch.setattr(internal_reader, "FIRSTS_A_ROUND", 2)
    spans = {TopicPartition(topic, number): (number, 100) for number in range(4)} | {TopicPartition(topic, 4): (0, 0)}
    with topic_reader(lab.flow().target) as reader:
        found = reader.first_records(spans, 30)
        assert reader.first_records(spans, 0) == {}
    producer.abort_transaction(30)
    first = {key.partition: record.key if isinstance(record, InternalRecord) else record for key, record in found.items()}
    assert first == {0: b"0", 1: b"4", 2: b"8", 3: None, 4: None}


def test_the_look_for_first_records_ends_in_time_when_the_cluster_hangs(lab: Lab) -> None:
    topic = lab.topic(lab.target)
    spans = {TopicPartition(topic, 0): (0, 9)}
    with topic_reader(lab.flow().target) as reader:
        assert reader.first_records(spans, 30) == {TopicPartition(topic, 0): None}
        lab.target.pause()
        try:
            began = time.monotonic()
            assert reader.first_records(spans, 3) == {}
            took = time.monotonic() - began
        finally:
            lab.target.resume()
    assert took < 3 + CONTACT_MILLISECONDS / 1000


def test_a_topic_that_is_gone_is_an_error_and_not_a_topic_without_records(lab: Lab) -> None:
    missing = TopicPartition("never-made", 0)
    with topic_reader(lab.flow(target=lab.target).target) as reader:
        (found,) = reader.first_records({missing: (0, 9)}, 30).values()
    assert isinstance(found, FerryError)
    assert missing.topic in str(found)
