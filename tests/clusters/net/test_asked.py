"""Questions that were begun are answered while others are asked, and their errors reach who waits for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from kafka.protocol.metadata import MetadataRequest
from tests.conftest import Lab
from tests.opened import open_groups, topic_reader

from ferry.clusters.net.connections import ClusterConnection, RequestLost
from ferry.clusters.net.shared_connection import IDLE_SECONDS
from ferry.clusters.open_cluster import open_cluster
from ferry.config import Flow
from ferry.errors import NotAuthorized

pytestmark = pytest.mark.brokers


def test_a_question_goes_on_while_others_are_asked(flow_factory: Callable[..., Flow]) -> None:
    done = list[str]()

    async def ask(connection: ClusterConnection, name: str, seconds: float) -> str:
        await connection.loop.sleep(seconds)
        done.append(name)
        return name

    with open_cluster(flow_factory().source) as cluster:
        begun = cluster.begin_asking(ask, "begun", 0.1).then(str.upper)
        assert cluster.ask(ask, "asked", 1.0) == "asked"
        assert done == ["begun", "asked"]
        assert begun.answer() == "BEGUN"


def test_an_error_reaches_who_waits_for_the_answer(flow_factory: Callable[..., Flow]) -> None:
    async def fail(_: ClusterConnection) -> None:
        raise RequestLost("failed")

    async def brokers(connection: ClusterConnection) -> tuple[int, ...]:
        return connection.brokers()

    with open_cluster(flow_factory().source) as cluster:
        begun = cluster.begin_asking(fail)
        assert cluster.ask(brokers)
        with pytest.raises(RequestLost, match="failed"):
            begun.answer()
        assert cluster.ask(brokers), "over a new connection"


def test_a_right_that_is_missing_leaves_the_connection_as_it_is(flow_factory: Callable[..., Flow]) -> None:
    asked = list[ClusterConnection]()

    async def refused(connection: ClusterConnection) -> None:
        asked.append(connection)
        raise NotAuthorized("grant Read on group g")

    with open_cluster(flow_factory().source) as cluster:
        for _ in range(2):
            with pytest.raises(NotAuthorized):
                cluster.ask(refused)
    assert asked[0] is asked[1]


def test_a_question_whose_connection_failed_for_another_user_is_asked_again(flow_factory: Callable[..., Flow]) -> None:
    asked = list[ClusterConnection]()

    async def fail(_: ClusterConnection) -> None:
        raise RequestLost("failed")

    async def wait(connection: ClusterConnection) -> tuple[int, ...]:
        asked.append(connection)
        await connection.loop.sleep(0.1)
        return connection.brokers()

    with open_cluster(flow_factory().source) as cluster:
        begun = cluster.begin_asking(wait)
        with pytest.raises(RequestLost, match="failed"):
            cluster.ask(fail)
        assert begun.answer()
    assert len(set(asked)) == 2


def test_a_read_that_was_begun_tells_what_was_there_then(lab: Lab) -> None:
    topics = [lab.topic(lab.target) for _ in range(2)]
    producer = Producer(lab.target.client_settings())
    for topic in topics:
        producer.produce(topic, b"v", topic.encode())
    assert producer.flush(30) == 0
    with topic_reader(lab.flow().target) as reader:
        first, second = (reader.read(topic) for topic in topics)
        assert [record.key for record in second] == [topics[1].encode()]
        producer.produce(topics[0], b"v", b"later")
        assert producer.flush(30) == 0
        assert [record.key for record in first] == [topics[0].encode()]


def test_after_a_long_pause_a_question_goes_over_a_new_connection(flow_factory: Callable[..., Flow]) -> None:
    """A commit of offsets too, which cannot be repeated. What else is asked over the connection keeps it in use."""
    with open_groups(flow_factory().target) as groups:
        [connection] = groups._connections
        sockets = connection._manager._conns
        assert groups.describe(["nobody"])
        first = sockets[1]
        assert groups.describe(["nobody"])
        assert sockets[1] is first
        connection.last_answer -= IDLE_SECONDS + 1
        assert groups.describe(["nobody"])
        second = sockets[1]
        assert second is not first
        connection.last_answer -= IDLE_SECONDS + 1
        connection.loop.run(connection.send, MetadataRequest(topics=[]), 1)
        assert groups.describe(["nobody"])
        assert sockets[1] is second
