"""The parts of the benchmark that talk to brokers."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator

import pytest
from benchmarks.counting import count_records
from benchmarks.flow import Clusters
from benchmarks.measure import Job, measure
from benchmarks.produce_limit import AppendFailed, append
from benchmarks.progress import CopyFailed
from benchmarks.shapes import SHAPES, Shape
from benchmarks.sources import produce_limit, source_topics
from benchmarks.topics import Ends, Topics
from confluent_kafka import Producer
from tests.waiting import until
from tools.kafka import SandboxCluster

pytestmark = pytest.mark.brokers


@pytest.fixture
def topics(target_cluster: SandboxCluster) -> Iterator[Topics]:
    """Of the target; what the test left is removed."""
    made = Topics(target_cluster.bootstrap)
    before = set(made.names())
    yield made
    made.delete([name for name in made.names() if name not in before and name.startswith("bench")])


def small(shape: Shape) -> Shape:
    return Shape(
        shape.name, shape.title, shape.record_bytes, shape.codec, shape.records_per_batch, 0.5, min(shape.topics, 3), shape.partitions
    )


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_prepared_batches_become_just_that_many_records(shape, topics):
    shape = small(shape)
    names = [f"bench-{secrets.token_hex(4)}" for _ in range(shape.topics)]
    topics.create(names, shape.partitions)
    append(topics.bootstrap, names, shape)
    with Ends(topics.bootstrap, [(name, number) for name in names for number in range(shape.partitions)]) as ends:
        found = ends.read()
    assert set(found.values()) == {shape.records_per_partition}
    assert count_records(topics.bootstrap, found) == shape.records


def test_a_topic_that_is_not_there_has_no_end_and_refuses_batches(topics):
    with Ends(topics.bootstrap, [("bench-missing", 0)]) as ends:
        assert ends.read() == {}
    with pytest.raises(AppendFailed, match="bench-missing"):
        append(topics.bootstrap, ["bench-missing"], small(SHAPES[0]))


def test_open_transactions_show_in_appended_and_aborted_ones_do_not_count(topics):
    name = f"bench-{secrets.token_hex(4)}"
    topics.create([name], 1)
    producer = Producer({"bootstrap.servers": topics.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    with Ends(topics.bootstrap, [(name, 0)]) as committed, Ends(topics.bootstrap, [(name, 0)], committed=False) as appended:
        for finish, start in ((producer.commit_transaction, 0), (producer.abort_transaction, 6)):
            producer.begin_transaction()
            for _ in range(5):
                producer.produce(name, b"value", partition=0)
            assert producer.flush(30) == 0
            assert (committed.read()[name, 0], appended.read()[name, 0]) == (start, start + 5)
            finish(30)
        until(lambda: committed.read() == {(name, 0): 12})  # markers are written after the producer has its answer
    assert count_records(topics.bootstrap, {(name, 0): 12}) == 5


def test_sources_are_removed_again(clusters):
    pair = Clusters(clusters[0].bootstrap, clusters[1].bootstrap)
    shape = small(SHAPES[0])
    with source_topics(pair, shape) as names:
        assert set(names) <= set(Topics(pair.source).names())
    assert produce_limit(pair, shape) > 0
    for bootstrap in (pair.source, pair.target):
        assert not [name for name in Topics(bootstrap).names() if name.startswith("benchmark-")]


def test_a_copier_that_copies_too_little_fails(topics, tmp_path):
    name = f"bench-{secrets.token_hex(4)}"
    topics.create([name], SHAPES[0].partitions)
    job = Job([sys.executable, "-c", "pass"], tmp_path / "log", topics.bootstrap, [(name, 0), (name, 1)], ends=True)
    with pytest.raises(CopyFailed, match="ended at 0 of"):
        measure(job, small(SHAPES[0]).records)


def test_a_copier_that_fails_at_its_end_fails(topics, tmp_path):
    shape = small(SHAPES[0])
    name = f"bench-{secrets.token_hex(4)}"
    topics.create([name], shape.partitions)
    append(topics.bootstrap, [name], shape)
    job = Job([sys.executable, "-c", "raise SystemExit(5)"], tmp_path / "log", topics.bootstrap, [(name, 0), (name, 1)], ends=True)
    with pytest.raises(CopyFailed, match="ended with 5"):
        measure(job, shape.records)
