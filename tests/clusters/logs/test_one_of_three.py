"""One broker of three dies or hangs: what is asked of the cluster meanwhile is answered by the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka.future import Future
from kafka.protocol.metadata import MetadataRequest
from tests.conftest import Lab
from tests.opened import administration, append_records, topic_reader
from tools.kafka import SandboxBrokers

from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.describe import WantedTopic
from ferry.clusters.logs import internal_reader
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.leaders import metadata_request
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import ClientRole

pytestmark = pytest.mark.brokers

PARTITIONS = [TopicPartition("t", number) for number in range(6)]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxBrokers]:
    with SandboxBrokers.start(tmp_path_factory.mktemp("three"), "three") as cluster:
        yield cluster


def controller_of(admin: ClusterAdmin) -> int:
    """What this client was told: with KRaft any broker, for clients."""
    client: AdminClient = admin._clients.admin
    return client.list_topics(timeout=30).controller_id


@pytest.mark.long
@pytest.mark.parametrize("hangs", [False, True], ids=["dies", "hangs"])
def test_the_broker_that_an_admin_client_takes_for_the_controller(hangs: bool, three: SandboxBrokers, lab: Lab) -> None:
    cluster = lab.flow(source=three, target=lab.target).source
    with administration(cluster) as admin, topic_reader(cluster) as reader:
        identity = admin.cluster_id()
        assert admin.create_topics([WantedTopic("t", len(PARTITIONS), 3)]) == {}
        three.wait_until_in_sync()
        append_records(cluster, {"t": [(b"k%d" % number, b"v") for number in range(100)]})
        held = len(list(reader.read("t")))
        node = three.nodes[controller_of(admin)]
        (node.pause if hangs else node.kill)()
        try:
            assert admin.topics()["t"].partitions == len(PARTITIONS)
            assert admin.visible_configs(["t"])[1] == {}
            assert admin.broker_configs()["broker.id"].value in {str(node) for node in three.nodes}
            ends, problems = admin.end_offsets(PARTITIONS)
            assert (sum(ends.values()), problems) == (held, {})
            append_records(cluster, {"t": [(b"k%d" % number, b"v") for number in range(100)]})
            assert len(list(reader.read("t"))) >= held + 100, "an answer that was lost has records written twice"
            if not hangs:  # brokers wait 30 s and more for a controller of the quorum that hangs, and no client can help it
                assert admin.create_topics([WantedTopic("made", 1, 2)]) == {}
        finally:
            (node.resume if hangs else node.run)()
        with administration(cluster) as another:
            assert another.cluster_id() == identity
        three.wait_until_in_sync()


@pytest.mark.long
def test_a_leader_dies_in_the_middle_of_a_read(three: SandboxBrokers, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until its partition has another leader, brokers are asked for no less at once."""
    monkeypatch.setattr(internal_reader, "PARTITION_BYTES", 10_000)
    less = list[int]()
    monkeypatch.setattr(internal_reader, "smaller", lambda size: less.append(size) or size)
    cluster = lab.flow(source=three, target=lab.target).source
    with administration(cluster) as admin, topic_reader(cluster) as reader:
        assert admin.create_topics([WantedTopic("read", 3, 3)]) == {}
        three.wait_until_in_sync()
        producer = Producer({**three.client_settings(), "batch.num.messages": 5})  # a whole batch always comes
        for number in range(600):
            producer.produce("read", b"v" * 1_000, b"%d" % number, partition=number % 3)
        assert producer.flush(60) == 0
        records = reader.read("read")
        keys = [next(records).key]
        node = three.nodes[three.leaders("read")[0]]
        node.kill()
        try:
            keys += [record.key for record in records]
        finally:
            node.run()
        three.wait_until_in_sync()
    assert sorted(map(int, keys)) == list(range(600))
    assert less == []


@pytest.mark.long
def test_what_a_broker_knows_that_has_lost_the_others_does_not_count(three: SandboxBrokers, lab: Lab) -> None:
    """One of three answers what it knew before the leader changed: also if it is asked first, or later alone."""
    cluster = lab.flow(source=three, target=lab.target).source
    with administration(cluster) as admin:
        assert admin.create_topics([WantedTopic("led", 1, 3)]) == {}
    three.wait_until_in_sync()
    loop = EventLoop()
    connection = ClusterConnection(loop, cluster, ClientRole.CONSUMER)
    try:
        loop.run(connection.open)
        old = loop.run(connection.send, metadata_request(["led"]))
        first = three.leaders("led")[0]
        three.nodes[first].kill()
        deadline = time.monotonic() + 60
        while three.leaders("led")[0] in {first, -1}:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        three.nodes[first].run()
        three.wait_until_in_sync()
        submit, others = connection.submit, [node for node in three.nodes if node != first]

        def remembered(request: Any, node: int, *more: Any) -> Future:
            is_old = node == first and isinstance(request, MetadataRequest)
            return Future().success(old) if is_old else submit(request, node, *more)

        connection.submit = remembered  # type: ignore[method-assign] - one broker answers what it knew
        connection._any_node = lambda asked: next((node for node in (first, *others) if node not in asked), None)  # type: ignore[method-assign]
        leaders = connection.leaders
        loop.run(leaders.ask, ["led"])
        assert leaders.of("led", 0).node == first
        for ask in (leaders.ask_two, leaders.ask):
            loop.run(ask, ["led"])
            assert leaders.of("led", 0).node == three.leaders("led")[0] != first
    finally:
        connection.close()
        loop.close()
