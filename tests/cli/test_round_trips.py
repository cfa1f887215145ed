"""How many requests a command sends one after the other to a far cluster, and over how many connections.

What counts is the chain of requests that wait for each other, not seconds: a busy machine makes no difference, or the command is tried
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.both_clusters import both_clusters
from tests.cli.inside import ferry
from tools.kafka.properties_file import write_properties
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.listener import proxied_properties
from tools.proxy.round_trips import connections, serial_requests
from tools.proxy.rules import Link

from ferry.sandbox.ports import free_ports
from ferry.syncs.names import SyncName

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SIDES = ("source", "target")
# Each way.
DELAY = 0.05
TRIES = 3
TOPICS = [f"t{number}" for number in range(5)]


@dataclass
class Far:
    """Both clusters, each behind its proxy, and a flow between them whose records are copied."""

    proxies: dict[str, BrokerProxy]
    config: Path

    def costs_at_most(self, requests: int, over: int, side: str, *arguments: str) -> None:
        """The command sends at most so many serial requests to the cluster on that side, which is far away, over so many connections."""
        costs = []
        for _ in range(TRIES):
            with self.proxies[side].recording() as found:
                self.proxies[side].link = Link(delay=DELAY)
                done = ferry(*arguments)
                self.proxies[side].link = Link()
            assert done.returncode == 0, done.stderr
            assert connections(found) <= over
            costs.append(serial_requests(found, DELAY))
            if costs[-1] <= requests:
                return
        raise AssertionError(f"{arguments[0]}: {costs} serial requests to the {side}, at most {requests} are needed")


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    directory = tmp_path_factory.mktemp("far")
    ports = {side: tuple(free_ports(2)) for side in SIDES}
    here, there = (proxied_properties(*ports[side]) for side in SIDES)
    with (
        BrokerProxy(*ports["source"]) as near,
        BrokerProxy(*ports["target"]) as away,
        both_clusters(directory, here, there) as (source, _),
    ):
        admin = AdminClient(source.client_settings())
        for made in admin.create_topics([NewTopic(topic, 4, 1) for topic in TOPICS]).values():
            made.result(30)
        producer = Producer(source.client_settings())
        for number in range(200):
            producer.produce(TOPICS[number % 5], b"v", str(number))
        assert producer.flush(30) == 0
        consumer = Consumer({**source.client_settings(), "group.id": "readers", "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition("t1", number, 1) for number in range(4)], asynchronous=False)
        consumer.close()
        found = Far({"source": near, "target": away}, directory / "mm2.properties")
        write_properties(settings(near, away), found.config)
        for _ in range(2):  # the first copies everything, the second one's syncs find all topics
            done = ferry("run", found.config, "--flow", "A->B", "--master", "inline")
            assert done.returncode == 0, done.stderr
        yield found


def settings(near: BrokerProxy, away: BrokerProxy, **more: Any) -> dict[str, str]:
    return {
        "clusters": "A, B",
        "A.bootstrap.servers": near.bootstrap,
        "B.bootstrap.servers": away.bootstrap,
        "A->B.enabled": "true",
        "A->B.topics": "t.*",
        "A->B.sync.group.offsets.enabled": "true",
        "A->B.sync.topic.acls.enabled": "false",  # the clusters have none
        "replication.factor": "1",
        **{f"{topic}.topic.replication.factor": "1" for topic in ("offset-syncs", "checkpoints", "heartbeats")},
        "ferry.internal.topics.replication.factor": "1",
        **more,
    }


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("command", ["plan", "status"])
def test_a_look_takes_ten_requests_over_one_connection(far: Far, side: str, command: str) -> None:
    far.costs_at_most(10, 1, side, command, str(far.config), "--flow", "A->B")


@pytest.mark.parametrize("side", SIDES)
def test_a_run_with_nothing_to_copy_takes_twenty_requests_over_one_connection(far: Far, side: str) -> None:
    config = far.config.with_name("quiet.properties")
    write_properties(settings(far.proxies["source"], far.proxies["target"], **{"emit.heartbeats.enabled": "false"}), config)
    far.costs_at_most(20, 1, side, "run", str(config), "--flow", "A->B", "--master", "inline")


@pytest.mark.parametrize(("side", "most"), [("source", 20), ("target", 37)])
def test_a_run_that_copies_a_heartbeat(far: Far, side: str, most: int) -> None:
    """The progress of a copy that takes long is watched over a connection of its own."""
    far.costs_at_most(most, 2, side, "run", str(far.config), "--flow", "A->B", "--master", "inline")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("sync", [name.value for name in SyncName if name not in {SyncName.ACLS, SyncName.SCHEMAS, SyncName.SOURCE_GROUP}])
def test_a_sync_takes_twenty_requests_over_one_connection(far: Far, side: str, sync: str) -> None:
    far.costs_at_most(20, 1, side, "sync", str(far.config), sync, "--flow", "A->B")
