"""What Metadata says of a topic that the user may not describe; and configs of very many topics."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from ferry.clusters.admin import metadata
from ferry.clusters.net.event_loop import EventLoop

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("missing", "refused", "exists"), [(False, 0, True), (True, 0, False), (False, 29, False)])
def test_a_topic_that_the_user_may_not_describe_does_not_count_as_there(missing: bool, refused: int, exists: bool) -> None:
    """Brokers refuse to describe it whether it exists or not."""

    async def known(_: object) -> None:
        """Nothing to ask."""

    leaders = SimpleNamespace(known=known, is_missing=lambda _: missing, refused=lambda _: refused)
    connection: Any = SimpleNamespace(leaders=leaders)
    assert asyncio.run(metadata.exists(connection, "t")) is exists


def test_configs_of_many_topics_are_asked_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "RESOURCES_A_REQUEST", 2)
    loop, in_flight, most = EventLoop(), 0, list[int]()

    async def send(request: Any, *_: object) -> Any:
        nonlocal in_flight
        in_flight += 1
        most.append(in_flight)
        await loop.sleep(0.01)
        in_flight -= 1
        return SimpleNamespace(
            results=[SimpleNamespace(resource_name=one.resource_name, error_code=0, configs=[]) for one in request.resources]
        )

    names = [f"t{number}" for number in range(6 * metadata.REQUESTS_AT_ONCE - 1)]
    connection: Any = SimpleNamespace(loop=loop, send=send)
    assert loop.run(metadata.configs, connection, names, metadata.TOPIC_RESOURCE, None) == {name: {} for name in names}
    loop.close()
    assert (max(most), len(most)) == (metadata.REQUESTS_AT_ONCE, 3 * metadata.REQUESTS_AT_ONCE)


@pytest.mark.parametrize("first", [KafkaError.REQUEST_TIMED_OUT, KafkaError.CLUSTER_AUTHORIZATION_FAILED])
def test_the_config_of_a_broker_that_can_tell_it(first: int) -> None:
    """The next one is asked, but not for a right that is missing everywhere."""
    loop = EventLoop()

    async def send(request: Any, node: int, _: int) -> Any:
        code = first if node == 1 else 0
        return SimpleNamespace(results=[SimpleNamespace(resource_name=str(node), error_code=code, error_message="no", configs=[])])

    connection: Any = SimpleNamespace(alias="A", loop=loop, send=send, brokers=lambda: (1, 2))
    node, answer = loop.run(metadata.broker_config, connection)
    loop.close()
    assert (node, isinstance(answer, KafkaError)) == ((2, False) if first == KafkaError.REQUEST_TIMED_OUT else (1, True))
