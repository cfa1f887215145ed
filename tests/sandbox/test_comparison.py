"""The comparison finds each planted difference: a check that cannot fail proves nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from ferry.sandbox import SandboxCluster, compare_topics, load_sample_topics, read_all

pytestmark = pytest.mark.brokers

RECORDS = [(b"a", b"1", [("h", b"x"), ("h", None)]), (b"b", None, []), (None, b"3", []), (b"d", b"4", [])]


def write(
    cluster: SandboxCluster, topic: str, records: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]], stamps: list[int]
) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for (key, value, headers), stamp in zip(records, stamps, strict=True):
        producer.produce(topic, value=value, key=key, headers=headers, timestamp=stamp, partition=0)
    assert producer.flush(30) == 0


@pytest.mark.parametrize(
    ("records", "stamps", "kinds"),
    [
        (RECORDS, [1, 2, 3, 4], []),
        (RECORDS[:3], [1, 2, 3], ["missing"]),
        ([*RECORDS, RECORDS[3]], [1, 2, 3, 4, 4], ["extra"]),
        ([RECORDS[0], RECORDS[2], RECORDS[1], RECORDS[3]], [1, 3, 2, 4], ["altered", "altered"]),
        ([*RECORDS[:3], (b"d", b"5", [])], [1, 2, 3, 4], ["altered"]),
        ([*RECORDS[:3], (b"d", b"4", [("new", b"")])], [1, 2, 3, 4], ["altered"]),
        ([(b"a", b"1", [("h", None), ("h", b"x")]), *RECORDS[1:]], [1, 2, 3, 4], ["altered"]),
        ([RECORDS[0], (b"b", b"", []), *RECORDS[2:]], [1, 2, 3, 4], ["altered"]),
        (RECORDS, [1, 2, 3, 5], ["altered"]),
    ],
)
def test_differences_are_found(
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    topic_factory: Callable[..., str],
    records: list,
    stamps: list[int],
    kinds: list[str],
) -> None:
    topic, copy = topic_factory(source_cluster), topic_factory(target_cluster)
    write(source_cluster, topic, RECORDS, [1, 2, 3, 4])
    write(target_cluster, copy, records, stamps)
    found = compare_topics(source_cluster.bootstrap, target_cluster.bootstrap, {topic: copy})
    assert [difference.kind for difference in found.differences] == kinds
    assert found.equal is not bool(kinds)


def test_sample_data_counts_only_what_was_committed(cluster_factory: Callable[..., SandboxCluster]) -> None:
    cluster = cluster_factory()
    summary = load_sample_topics(cluster.bootstrap, records=100)
    assert summary.aborted > 0
    for topic, count in summary.topics.items():
        if topic != "accounts":  # compaction may drop some
            assert sum(len(partition) for partition in read_all(cluster.bootstrap, topic)) == count
