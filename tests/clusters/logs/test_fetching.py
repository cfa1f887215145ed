"""A fetch, and a produce, names topics by id only where they have ids: what brokers offer does not say that."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast
from uuid import UUID, uuid4

import pytest
from kafka.protocol.broker_version_data import BrokerVersionData

from ferry.clusters.logs.fetching import BY_NAME, FetchPosition, fetch_request
from ferry.clusters.logs.producing import BY_ID, produce_request
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.leaders import NO_TOPIC_ID, Leaders

pytestmark = pytest.mark.unit

NEWEST_FETCH, NEWEST_PRODUCE = 18, 13


def leaders(ids: Mapping[str, UUID]) -> Leaders:
    found = Leaders(cast("ClusterConnection", None), ids)
    part = SimpleNamespace(partition_index=0, leader_id=1, leader_epoch=3)
    topics = [SimpleNamespace(name=name, error_code=0, topic_id=topic_id, partitions=[part]) for name, topic_id in ids.items()]
    found.take(SimpleNamespace(topics=topics))
    return found


@pytest.mark.parametrize(
    ("ids", "fetch", "produce"),
    [
        ({"a": uuid4(), "b": uuid4()}, NEWEST_FETCH, NEWEST_PRODUCE),
        ({"a": NO_TOPIC_ID, "b": NO_TOPIC_ID}, BY_NAME, BY_ID - 1),
        ({"a": uuid4(), "b": NO_TOPIC_ID}, BY_NAME, BY_ID - 1),
    ],
    ids=["ids", "none", "some"],
)
def test_the_version_of_a_request(ids: dict[str, UUID], fetch: int, produce: int) -> None:
    broker = BrokerVersionData(api_versions={1: (0, NEWEST_FETCH), 0: (3, NEWEST_PRODUCE)})
    asked = fetch_request([FetchPosition(name, 0, 5, 2) for name in ids], leaders(ids), total_bytes=1, partition_bytes=1)
    assert broker.api_version(asked) == fetch
    sent = produce_request([(name, 0, (b"batch",)) for name in ids], leaders(ids), "id", transactions_v2=True)
    assert broker.api_version(sent) == produce
    assert broker.api_version(produce_request([("a", 0, (b"batch",))], leaders(ids), "id", transactions_v2=False)) == BY_ID - 2
