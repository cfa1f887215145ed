"""Both sides are equal, record by record, as clients see them that share no code with Ferry."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.log_ends import until_markers
from tests.opened import plan_run, read_receipts
from tools.kafka import SandboxCluster, compare_topics, read_all
from tools.kafka.topics import grow_topic

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
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=2)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("batch", [1, 10, 10_000])
def test_every_codec_and_batch_size(codec: str, batch: int, flow: Flow, topic: str, lab: Lab) -> None:
    fill(lab.source, topic, 600, **{"compression.type": codec, "batch.num.messages": batch})
    report = lab.run(flow)
    assert report.exit_code is ExitCode.DONE
    assert report.records == 600
    assert assert_equal(flow, lab.source, lab.target, topic) == 600


def test_aborted_records_stay_behind_and_a_second_run_copies_nothing(flow: Flow, topic: str, lab: Lab) -> None:
    abort_some(lab.source, topic)
    assert lab.run(flow).records == 3 * 10
    assert_equal(flow, lab.source, lab.target, topic)
    again = lab.run(flow)
    assert (again.records, again.partitions) == (0, ())
    abort_some(lab.source, topic)
    fill(lab.source, topic, 40)
    lab.run(flow)
    assert assert_equal(flow, lab.source, lab.target, topic) == 2 * 30 + 40


def test_a_partition_with_nothing_but_aborted_records_reaches_its_end(flow: Flow, topic: str, lab: Lab) -> None:
    producer = Producer({"bootstrap.servers": lab.source.bootstrap, "transactional.id": f"tx-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value=b"never", partition=0)
    producer.flush(30)
    producer.abort_transaction(30)
    until_markers(lab.source, topic)
    report = lab.run(flow)
    assert report.records == 0
    assert [(entry.partition, entry.upstream_end) for entry in report.partitions] == [(0, 2)]
    assert lab.run(flow).partitions == ()


def test_compacted_topics_with_holes(flow: Flow, topic: str, lab: Lab) -> None:
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
    admin = AdminClient({"bootstrap.servers": lab.source.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config=settings)])[name].result(30)
    producer = Producer({"bootstrap.servers": lab.source.bootstrap, "linger.ms": 20})
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
    report = lab.run(flow)
    assert report.exit_code is ExitCode.DONE
    # Each side's cleaner goes on meanwhile, so only the newest record of each key is sure to be there.
    sides = (read_all(lab.source.bootstrap, name), read_all(lab.target.bootstrap, remote(flow, name)))
    here, there = ({record.key: record.content for record in records} for (records,) in sides)
    assert here == there
    assert len(here) == 51
    assert {record.value for record in sides[1][0]} <= values


def test_the_ledger_explains_every_downstream_offset(flow: Flow, topic: str, lab: Lab) -> None:
    fill(lab.source, topic, 500, **{"batch.num.messages": 7})
    abort_some(lab.source, topic)
    lab.run(flow)
    fill(lab.source, topic, 300)
    lab.run(flow)
    upstream = read_all(lab.source.bootstrap, topic)
    downstream = read_all(lab.target.bootstrap, remote(flow, topic))
    mapped: dict[tuple[int, int], int] = {}
    for receipt in read_receipts(flow):
        for start, base, count in receipt.runs:
            mapped.update({(receipt.partition, start + index): base + index for index in range(count)})
    for partition in (0, 1):
        pairs = zip(upstream[partition], downstream[partition], strict=True)
        assert all(mapped.pop((partition, record.offset)) == copy.offset for record, copy in pairs)
    assert not mapped


def test_at_least_once_copies_all(topic: str, lab: Lab) -> None:
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.transaction.producer = false")
    assert flow.exactly_once is False
    fill(lab.source, topic, 700)
    abort_some(lab.source, topic)
    assert lab.run(flow).records == 730
    fill(lab.source, topic, 100)
    assert lab.run(flow).records == 100
    assert assert_equal(flow, lab.source, lab.target, topic) == 830


def test_the_older_transaction_protocol(topic: str, lab: Lab, cluster_factory: Callable[..., SandboxCluster]) -> None:
    target = cluster_factory(features=("transaction.version=1",))
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.transaction.mb = 1", target=target)
    fill(lab.source, topic, 40_000, **{"compression.type": "none"})
    abort_some(lab.source, topic)
    assert lab.run(flow).records == 40_030
    fill(lab.source, topic, 50)
    lab.run(flow)
    assert assert_equal(flow, lab.source, target, topic) == 40_080


def test_new_partitions_and_topics_join(flow: Flow, topic: str, lab: Lab) -> None:
    fill(lab.source, topic, 50)
    lab.run(flow)
    grow_topic(lab.source.client_settings(), topic, 5)
    another = lab.topic(lab.source, partitions=1, name=f"{topic}-more")
    fill(lab.source, topic, 100, partitions=5)
    fill(lab.source, another, 10, partitions=1)
    report = lab.run(flow)
    assert report.exit_code is ExitCode.DONE
    assert assert_equal(flow, lab.source, lab.target, topic, another) == 160


def test_internal_topics_are_never_copied(lab: Lab, topic: str) -> None:
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.topics.exclude =")
    fill(lab.source, topic, 10)
    lab.run(flow)
    back = lab.flow("A->B.topics = .*", "A->B.topics.exclude =", source=lab.target, target=lab.source)
    planned = plan_run(back, RunRequest(back.name, "look"))
    names = {plan.facts.topic for plan in planned.partitions}
    assert flow.ledger_topic not in names
    assert flow.state_topic not in names


def test_one_cluster_under_two_aliases_is_refused(lab: Lab, topic: str) -> None:
    port = lab.source.bootstrap.rsplit(":", 1)[1]
    flow = lab.flow(f"A->B.topics = {topic}", f"B.bootstrap.servers = localhost:{port}")
    with pytest.raises(ConfigError, match="same cluster"):
        lab.run(flow)


def test_a_record_near_the_limit_passes(flow: Flow, topic: str, lab: Lab) -> None:
    fill(lab.source, topic, 30)
    producer = Producer({"bootstrap.servers": lab.source.bootstrap, "message.max.bytes": 1_000_000})
    producer.produce(topic, value=b"x" * 900_000, partition=0)
    producer.flush(30)
    assert lab.run(flow).records == 31
    assert assert_equal(flow, lab.source, lab.target, topic) == 31
