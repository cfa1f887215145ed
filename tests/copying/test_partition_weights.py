"""How many bytes a partition has left to send, by what is known of it or of others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka.future import Future
from tests.conftest import Lab
from tests.opened import ask_cluster

from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying import partition_weights
from ferry.copying.partition_weights import FEW_OFFSETS, UNKNOWN_BYTES, bytes_an_offset, log_sizes, without_size


def plan(topic: str, number: int = 0, *, told: int | None = None, start: int = 0, end: int = 100, offsets: int = FEW_OFFSETS) -> Any:
    head = None if told is None else SimpleNamespace(record_bytes=told)
    return SimpleNamespace(
        facts=SimpleNamespace(key=TopicPartition(topic, number), head=head, log_start=start, stable_end=end), offsets=offsets
    )


@pytest.mark.unit
def test_what_was_copied_last_tells_before_the_log() -> None:
    plans = [plan("a", told=70), plan("b", start=50), plan("c", told=0)]
    sizes = {TopicPartition(topic, 0): 10_000 for topic in "abc"}
    assert list(bytes_an_offset(plans, sizes).values()) == [70, 200, 100]


@pytest.mark.unit
def test_what_nobody_tells_is_like_the_others() -> None:
    plans = [plan("a", 0, told=10), plan("a", 1, told=30), plan("a", 2), plan("b"), plan("c", told=110), plan("d", start=100)]
    assert list(bytes_an_offset(plans, {TopicPartition("d", 0): 10_000}).values()) == [10, 30, 20, 50, 110, 50]
    assert list(bytes_an_offset([plan("a"), plan("b")], {}).values()) == [UNKNOWN_BYTES] * 2
    assert bytes_an_offset([], {}) == {}


@pytest.mark.unit
def test_the_source_is_asked_only_where_it_matters() -> None:
    plans = [plan("a", told=10), plan("b", offsets=1), plan("c", offsets=FEW_OFFSETS - 2)]
    assert without_size(plans) == []
    plans.append(plan("d", told=0, offsets=1))
    assert without_size(plans) == [TopicPartition(topic, 0) for topic in "bcd"], "one request, whatever it names"


@pytest.mark.brokers
def test_the_size_of_each_log(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_weights, "ANSWER_SECONDS", 60.0)  # on a busy machine a broker may need longer than a run waits
    topic = lab.topic(lab.source, partitions=3)
    producer = Producer(lab.source.client_settings())
    for _ in range(100):
        producer.produce(topic, b"v" * 1_000, partition=1)
    assert producer.flush(30) == 0
    asked = [TopicPartition(topic, number) for number in range(2)]
    found = ask_cluster(lab.flow().source, log_sizes, [*asked, TopicPartition("missing", 0)])
    if not is_mounted(lab.source.directory):
        assert found == {}
        return
    assert found.keys() == set(asked)
    assert found[asked[0]] == 0
    assert 100_000 < found[asked[1]] < 120_000


def is_mounted(directory: Path) -> bool:
    """Whether a mount point is on the way to the directory. In a chroot there may be none: then the broker's Java finds no file store, and
    a broker since 3.3 answers DescribeLogDirs with an error, as often as one asks.
    """
    points = {Path(line.split()[1]) for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()}
    return not points.isdisjoint((directory, *directory.parents))


@pytest.mark.unit
def test_a_broker_that_hangs_holds_up_nobody_and_keeps_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """kafka-python closes the connection of a request whose own time is over, with all that others have asked over it."""
    monkeypatch.setattr(partition_weights, "ANSWER_SECONDS", 0.05)
    asked: list[tuple[Any, ...]] = []

    async def known(_: object) -> None:
        """It knows them."""

    def submit(*how: Any) -> Future:
        asked.append(how)
        return Future()

    loop = EventLoop()
    leaders = SimpleNamespace(known=known, by_node=lambda keys: {1: keys})
    connection: Any = SimpleNamespace(loop=loop, leaders=leaders, submit=submit)
    assert loop.run(log_sizes, connection, [TopicPartition("t", 0)]) == {}
    loop.close()
    [(_, *how)] = asked
    assert how == [1], "no time of its own"
