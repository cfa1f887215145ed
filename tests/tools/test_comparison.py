"""The comparison finds each planted difference: a check that cannot fail proves nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.waiting import until
from tools.kafka import SandboxCluster, compare_topics, read_all
from tools.kafka.comparison import DIFFERENCES_A_PARTITION
from tools.kafka.reading import NotReadable, partition_bounds

pytestmark = pytest.mark.brokers

Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
Topics = Callable[..., str]
RECORDS: list[Record] = [(b"a", b"1", [("h", b"x"), ("h", None)]), (b"b", None, []), (None, b"3", []), (b"d", b"4", [])]
STAMPS = [1, 2, 3, 4]


def write(cluster: SandboxCluster, topic: str, records: list[Record], stamps: list[int], partition: int = 0) -> None:
    producer = Producer(cluster.client_settings())
    for (key, value, headers), stamp in zip(records, stamps, strict=True):
        producer.produce(topic, value=value, key=key, headers=headers, timestamp=stamp, partition=partition)
    assert producer.flush(30) == 0


@pytest.mark.parametrize(
    ("records", "stamps", "found"),
    [
        (RECORDS, STAMPS, []),
        (RECORDS[:3], STAMPS[:3], [("missing", 3)]),
        (RECORDS[1:], STAMPS[1:], [("missing", 0)]),
        ([], [], [("missing", 0), ("missing", 1), ("missing", 2), ("missing", 3)]),
        ([*RECORDS, RECORDS[3]], [*STAMPS, 4], [("extra", 4)]),
        ([RECORDS[0], RECORDS[0], *RECORDS[1:]], [1, *STAMPS], [("extra", 1)]),
        ([RECORDS[0], RECORDS[2], RECORDS[1], RECORDS[3]], [1, 3, 2, 4], [("order", 1), ("order", 2)]),
        ([*RECORDS[:3], (b"d", b"5", [])], STAMPS, [("value", 3)]),
        ([*RECORDS[:3], (b"D", b"4", [])], STAMPS, [("key", 3)]),
        ([*RECORDS[:2], (b"", b"3", []), RECORDS[3]], STAMPS, [("key", 2)]),
        ([RECORDS[0], (b"b", b"", []), *RECORDS[2:]], STAMPS, [("value", 1)]),
        ([*RECORDS[:3], (b"d", b"4", [("new", b"")])], STAMPS, [("headers", 3)]),
        ([(b"a", b"1", [("h", None), ("h", b"x")]), *RECORDS[1:]], STAMPS, [("headers", 0)]),
        ([(b"a", b"1", [("h", b"x")]), *RECORDS[1:]], STAMPS, [("headers", 0)]),
        ([(b"a", b"1", [("h", b"x"), ("h", b"")]), *RECORDS[1:]], STAMPS, [("headers", 0)]),
        (RECORDS, [1, 2, 3, 5], [("timestamp", 3)]),
        ([*RECORDS[:3], (b"x", b"y", [])], STAMPS, [("record", 3)]),
    ],
)
def test_differences_are_found(lab: Lab, records: list[Record], stamps: list[int], found: list[tuple[str, int]]) -> None:
    topic, copy = lab.topic(lab.source), lab.topic(lab.target)
    write(lab.source, topic, RECORDS, STAMPS)
    write(lab.target, copy, records, stamps)
    compared = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: copy})
    assert [(difference.kind, difference.position) for difference in compared.differences] == found
    assert compared.equal is not bool(found)
    assert compared.records >= len(RECORDS)


def test_the_brokers_append_time_arrives_as_the_records_own(lab: Lab) -> None:
    appended = {"message.timestamp.type": "LogAppendTime"}
    topic, copy = lab.topic(lab.source, config=appended), lab.topic(lab.target)
    other = lab.topic(lab.target, config=appended)
    write(lab.source, topic, RECORDS, STAMPS)
    ((*seen,),) = read_all(lab.source.bootstrap, topic)
    assert all(record.timestamp > 1_000_000 for record in seen)
    for remote in (copy, other):
        write(lab.target, remote, RECORDS, [record.timestamp for record in seen])
    assert compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: copy}).equal
    replaced = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: other})
    assert len(replaced.differences) == len(RECORDS)


def test_records_in_a_partition_that_one_side_lacks(lab: Lab) -> None:
    one, two = lab.topic(lab.source), lab.topic(lab.target, partitions=2)
    assert compare_topics(lab.source.bootstrap, lab.target.bootstrap, {one: two}).equal
    write(lab.target, two, RECORDS[:1], STAMPS[:1], partition=1)
    extra = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {one: two}).differences
    missing = compare_topics(lab.target.bootstrap, lab.source.bootstrap, {two: one}).differences
    assert [(difference.kind, difference.partition) for difference in extra + missing] == [("extra", 1), ("missing", 1)]


def test_a_topic_that_is_not_there_is_not_equal(lab: Lab) -> None:
    topic = lab.topic(lab.source)
    for pairs in ({topic: "nowhere"}, {"nowhere": topic}, {"nowhere": "nowhere"}):
        with pytest.raises(NotReadable, match="nowhere"):
            compare_topics(lab.source.bootstrap, lab.source.bootstrap, pairs)


def test_a_partition_is_left_after_a_few_differences(lab: Lab) -> None:
    topic, copy = lab.topic(lab.source, partitions=2), lab.topic(lab.target, partitions=2)
    for partition in (0, 1):
        write(lab.source, topic, RECORDS * 5, STAMPS * 5, partition)
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: copy})
    assert [difference.partition for difference in found.differences] == [0] * DIFFERENCES_A_PARTITION + [1] * DIFFERENCES_A_PARTITION


def test_only_what_was_committed_by_then_counts(lab: Lab) -> None:
    """Aborted records are no records, and an open transaction ends the reading before it."""
    topic, copy = lab.topic(lab.source), lab.topic(lab.target)
    producer = Producer({**lab.source.client_settings(), "transactional.id": topic})
    producer.init_transactions(30)
    for value, end in ((b"1", producer.commit_transaction), (b"aborted", producer.abort_transaction), (b"open", None)):
        producer.begin_transaction()
        producer.produce(topic, value=value, timestamp=7, partition=0)
        assert producer.flush(30) == 0
        if end is not None:
            end(30)
    write(lab.target, copy, [(None, b"1", [])], [7])
    assert compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: copy}).equal
    before = partition_bounds(lab.source.bootstrap, topic)
    producer.commit_transaction(30)
    until(lambda: partition_bounds(lab.source.bootstrap, topic) != before)  # a commit returns before its marker is written
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: copy})
    assert [(difference.kind, difference.source.value) for difference in found.differences if difference.source] == [("missing", b"open")]
