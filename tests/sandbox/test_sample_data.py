"""The sample topics hold what they say, and more after each call."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conftest import Lab
from tools.kafka import RecordSeen, SandboxCluster, read_all
from tools.kafka.groups import next_records

from ferry.sandbox.sample_data import load_sample_topics, read_in_part

pytestmark = pytest.mark.brokers


def test_sample_topics_hold_a_bit_of_everything(cluster_factory: Callable[..., SandboxCluster]) -> None:
    cluster = cluster_factory()

    def read(topic: str) -> list[RecordSeen]:
        return [record for partition in read_all(cluster.bootstrap, topic) for record in partition]

    for times in (1, 2):
        summary = load_sample_topics(cluster.bootstrap, seed=times, records=100)
        assert summary.records == sum(summary.topics.values())
        assert summary.aborted > 0
        for topic, count in summary.topics.items():
            if topic != "accounts":  # compaction may drop some
                assert len(read(topic)) == count * times
    orders = read("orders-zstd")
    assert {record.key is None for record in orders} == {True, False}
    assert {None, b""} < {record.value for record in orders}
    assert {(("trace", b"a"), ("trace", b"b")), (("empty", b""), ("null", None)), ()} == {record.headers for record in orders}
    assert len(read_all(cluster.bootstrap, "clicks")) == 6
    assert None in {record.value for record in read("accounts")}


def test_the_next_records_are_those_behind_the_middle(lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=2)
    lab.produce(lab.source, topic, [(number % 2, b"k%d" % number, b"v%d" % number) for number in range(20)])
    assert read_in_part(lab.source.bootstrap, f"group-{topic}", topic) == 2
    assert next_records(lab.source.bootstrap, f"group-{topic}", topic) == {0: (b"k10", b"v10"), 1: (b"k11", b"v11")}
