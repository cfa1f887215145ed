"""Both sides are equal, record by record, as clients see them that share no code with Ferry."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tests.conftest import ClusterPair
from tests.log_ends import until_markers
from tests.opened import plan_run, read_receipts
from tools.kafka import SandboxCluster, compare_topics, read_all

from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import ConfigError, ExitCode
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def remote(flow: Flow, topic: str) -> str:
    return f"{flow.source.alias}.{topic}"


def fill(cluster: SandboxCluster, topic: str, count: int, *, start: int = 0, partitions: int = 2, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, **settings})
    for number in range(start, start + count):
        headers = [[], [("h", b"1"), ("h", b"2")], [("none", None), ("empty", b"")]][number % 3]
        value = None if number % 10 == 9 else str(number).encode() * (1 + number % 7)
        key = None if number % 4 == 3 else f"k{number % 13}".encode()
        producer.produce(topic, value=value, key=key, headers=headers, timestamp=1_700_000_000_000 + number, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(60) == 0


def abort_some(cluster: SandboxCluster, topic: str, *, rounds: int = 6) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": f"tx-{topic}"})
    producer.init_transactions(30)
    for number in range(rounds):
        producer.begin_transaction()
        for partition, index in itertools.product(range(2), range(5)):
            producer.produce(topic, value=f"{number}-{index}".encode(), key=b"t", partition=partition)
        producer.flush(30)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)
    until_markers(cluster, topic)


def assert_equal(flow: Flow, source: SandboxCluster, target: SandboxCluster, *topics: str) -> int:
    found = compare_topics(source.bootstrap, target.bootstrap, {topic: remote(flow, topic) for topic in topics})
    assert found.equal, found.differences
    return found.records


@pytest.fixture
def flow(flow_factory: Callable[..., Flow], topic: str) -> Flow:
    return flow_factory(f"A->B.topics = {topic}.*")


@pytest.fixture
def topic(pair: ClusterPair) -> str:
    return pair.topic(pair.source, partitions=2)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("batch", [1, 10, 10_000])
def test_every_codec_and_batch_size(codec: str, batch: int, flow: Flow, topic: str, pair: ClusterPair) -> None:
    fill(pair.source, topic, 600, **{"compression.type": codec, "batch.num.messages": batch})
    report = pair.run(flow)
    assert report.exit_code is ExitCode.DONE
    assert report.records == 600
    assert assert_equal(flow, pair.source, pair.target, topic) == 600


def test_aborted_records_stay_behind_and_a_second_run_copies_nothing(flow: Flow, topic: str, pair: ClusterPair) -> None:
    abort_some(pair.source, topic)
    assert pair.run(flow).records == 3 * 10
    assert_equal(flow, pair.source, pair.target, topic)
    again = pair.run(flow)
    assert (again.records, again.partitions) == (0, ())
    abort_some(pair.source, topic)
    fill(pair.source, topic, 40)
    pair.run(flow)
    assert assert_equal(flow, pair.source, pair.target, topic) == 2 * 30 + 40


def test_a_partition_with_nothing_but_aborted_records_reaches_its_end(flow: Flow, topic: str, pair: ClusterPair) -> None:
    producer = Producer({"bootstrap.servers": pair.source.bootstrap, "transactional.id": f"tx-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value=b"never", partition=0)
    producer.flush(30)
    producer.abort_transaction(30)
    until_markers(pair.source, topic)
    report = pair.run(flow)
    assert report.records == 0
    assert [(entry.partition, entry.upstream_end) for entry in report.partitions] == [(0, 2)]
    assert pair.run(flow).partitions == ()


def test_compacted_topics_with_holes(flow: Flow, topic: str, pair: ClusterPair) -> None:
    """Raw batches with holes, as the log cleaner leaves them, cannot be produced: they are copied from a compacted log."""
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    name = f"{topic}-compacted"
    settings = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
        "segment.ms": "100",
    }
    admin = AdminClient({"bootstrap.servers": pair.source.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config=settings)])[name].result(30)
    producer = Producer({"bootstrap.servers": pair.source.bootstrap, "linger.ms": 20})
    values: set[bytes | None] = set()
    for number in range(3_000):
        values.add(f"{number}".encode() * 20)
        producer.produce(name, key=f"k{number % 50}".encode(), value=f"{number}".encode() * 20, partition=0)
        producer.poll(0)
    producer.flush(30)
    for number in range(20):  # rolls the segment, so that the cleaner may take it
        values.add(str(number).encode())
        producer.produce(name, key=b"last", value=str(number).encode(), partition=0)
        producer.flush(30)
    report = pair.run(flow)
    assert report.exit_code is ExitCode.DONE
    # Each side's cleaner goes on meanwhile, so only the newest record of each key is sure to be there.
    sides = (read_all(pair.source.bootstrap, name), read_all(pair.target.bootstrap, remote(flow, name)))
    here, there = ({record.key: record.content for record in records} for (records,) in sides)
    assert here == there
    assert len(here) == 51
    assert {record.value for record in sides[1][0]} <= values


def test_the_ledger_explains_every_downstream_offset(flow: Flow, topic: str, pair: ClusterPair) -> None:
    fill(pair.source, topic, 500, **{"batch.num.messages": 7})
    abort_some(pair.source, topic)
    pair.run(flow)
    fill(pair.source, topic, 300)
    pair.run(flow)
    upstream = read_all(pair.source.bootstrap, topic)
    downstream = read_all(pair.target.bootstrap, remote(flow, topic))
    mapped: dict[tuple[int, int], int] = {}
    for receipt in read_receipts(flow):
        for start, base, count in receipt.runs:
            mapped.update({(receipt.partition, start + index): base + index for index in range(count)})
    for partition in (0, 1):
        pairs = zip(upstream[partition], downstream[partition], strict=True)
        assert all(mapped.pop((partition, record.offset)) == copy.offset for record, copy in pairs)
    assert not mapped


def test_at_least_once_copies_all(topic: str, pair: ClusterPair) -> None:
    flow = pair.flow(f"A->B.topics = {topic}", "A->B.transaction.producer = false")
    assert flow.exactly_once is False
    fill(pair.source, topic, 700)
    abort_some(pair.source, topic)
    assert pair.run(flow).records == 730
    fill(pair.source, topic, 100)
    assert pair.run(flow).records == 100
    assert assert_equal(flow, pair.source, pair.target, topic) == 830


def test_the_older_transaction_protocol(topic: str, pair: ClusterPair, cluster_factory: Callable[..., SandboxCluster]) -> None:
    target = cluster_factory(features=("transaction.version=1",))
    flow = pair.flow(f"A->B.topics = {topic}", "A->B.ferry.transaction.mb = 1", target=target)
    fill(pair.source, topic, 40_000, **{"compression.type": "none"})
    abort_some(pair.source, topic)
    assert pair.run(flow).records == 40_030
    fill(pair.source, topic, 50)
    pair.run(flow)
    assert assert_equal(flow, pair.source, target, topic) == 40_080


def test_new_partitions_and_topics_join(flow: Flow, topic: str, pair: ClusterPair) -> None:
    from confluent_kafka.admin import AdminClient, NewPartitions  # noqa: PLC0415

    fill(pair.source, topic, 50)
    pair.run(flow)
    admin = AdminClient({"bootstrap.servers": pair.source.bootstrap})
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(30)
    another = pair.topic(pair.source, partitions=1, name=f"{topic}-more")
    fill(pair.source, topic, 100, partitions=5)
    fill(pair.source, another, 10, partitions=1)
    report = pair.run(flow)
    assert report.exit_code is ExitCode.DONE
    assert assert_equal(flow, pair.source, pair.target, topic, another) == 160


def test_internal_topics_are_never_copied(pair: ClusterPair, topic: str) -> None:
    flow = pair.flow(f"A->B.topics = {topic}", "A->B.topics.exclude =")
    fill(pair.source, topic, 10)
    pair.run(flow)
    back = pair.flow("A->B.topics = .*", "A->B.topics.exclude =", source=pair.target, target=pair.source)
    planned = plan_run(back, RunRequest(back.name, "look"))
    names = {plan.facts.topic for plan in planned.partitions}
    assert flow.ledger_topic not in names
    assert flow.state_topic not in names


def test_one_cluster_under_two_aliases_is_refused(pair: ClusterPair, topic: str) -> None:
    port = pair.source.bootstrap.rsplit(":", 1)[1]
    flow = pair.flow(f"A->B.topics = {topic}", f"B.bootstrap.servers = localhost:{port}")
    with pytest.raises(ConfigError, match="same cluster"):
        pair.run(flow)


def test_a_record_near_the_limit_passes(flow: Flow, topic: str, pair: ClusterPair) -> None:
    fill(pair.source, topic, 30)
    producer = Producer({"bootstrap.servers": pair.source.bootstrap, "message.max.bytes": 1_000_000})
    producer.produce(topic, value=b"x" * 900_000, partition=0)
    producer.flush(30)
    assert pair.run(flow).records == 31
    assert assert_equal(flow, pair.source, pair.target, topic) == 31
