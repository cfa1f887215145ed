"""The end of an id's epochs under KIP-890: a commit at the last one answers a new producer id, and that answer may be lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.opened import fenced_writer
from tests.proxied import proxied_cluster
from tests.waiting import NEVER_SECONDS, until
from tools.kafka import SandboxCluster, read_all
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.rules import END_TXN, Action, Rule

from ferry.clusters.groups.coordination import Coordinator, Fenced, ProducerIdentity
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.event_loop import EventLoop, Wakeup, together
from ferry.clusters.net.leaders import Leaders
from ferry.config import ClientRole, Flow
from ferry.copying.internal_writer import InternalWriter

pytestmark = [pytest.mark.brokers, pytest.mark.long]

# The last epoch that a broker gives to a client.
LAST_EPOCH = 32_766
OWN, TAKEN_AFTER, TAKEN_BEFORE = "own", "taken after its commit", "taken instead of its commit"


class Broker:
    """Requests to one broker, past the proxy."""

    def __init__(self, flow: Flow, topic: str) -> None:
        self.loop, self._topic = EventLoop(), topic
        self._connection = ClusterConnection(self.loop, flow.target, ClientRole.PRODUCER)
        self.loop.run(self._connection.open)

    def close(self) -> None:
        self._connection.close()
        self.loop.close()

    def begin_anew(self) -> None:
        self._connection.begin_anew()

    def coordinator(self, name: str) -> Coordinator:
        return Coordinator(self.loop, self._connection, name, "g")

    def raised(self, names: list[str]) -> dict[str, ProducerIdentity]:
        """Each id at its last epoch, side by side."""

        async def raise_one(coordinator: Coordinator) -> ProducerIdentity:
            pair = await coordinator.init()
            while pair.epoch < LAST_EPOCH:
                pair = await coordinator.init(pair)
            return pair

        async def raise_all() -> list[ProducerIdentity]:
            return await together([self.loop.start(raise_one, self.coordinator(name)) for name in names])

        return dict(zip(names, self.loop.run(raise_all), strict=True))

    def write(self, name: str, pair: ProducerIdentity, *, commit: bool) -> ProducerIdentity:
        async def write() -> ProducerIdentity:
            leaders = Leaders(self._connection, [self._topic])
            await leaders.refresh()
            writer = InternalWriter(self._connection, leaders, Wakeup(self.loop), name, transactions_v2=True)
            writer.adopt(pair)
            await writer.append({(self._topic, 0): [(b"k", name.encode())]})
            return await self.coordinator(name).end(pair, committed=True, transactions_v2=True) if commit else pair

        return self.loop.run(write)

    def proven(self, name: str, pair: ProducerIdentity) -> ProducerIdentity:
        async def prove() -> ProducerIdentity:
            return await self.coordinator(name).prove(pair, transactions_v2=True)

        return self.loop.run(prove)


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    with proxied_cluster(tmp_path / "target") as both:
        yield both


def test_the_lost_answer_to_a_commit_at_the_last_epoch(
    proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: Callable[..., Flow], topic_factory: Callable[..., str]
) -> None:
    cluster, proxy = proxied
    topic = topic_factory(cluster)
    flow = flow_factory("A->B.topics = x", target=cluster)
    through = flow_factory("A->B.topics = x", target=proxy)
    broker = Broker(flow, topic)
    try:
        with fenced_writer(through, OWN) as writer:
            held = broker.raised([OWN, TAKEN_AFTER, TAKEN_BEFORE])
            writer.identity = held[OWN]
            answer = broker.write(TAKEN_AFTER, held[TAKEN_AFTER], commit=True)
            assert (answer.epoch, answer.producer_id == held[TAKEN_AFTER].producer_id) == (0, False)
            broker.write(TAKEN_BEFORE, held[TAKEN_BEFORE], commit=False)
            lost = proxy.add(Rule(END_TXN, Action.SWALLOW_ANSWER, containing=OWN.encode()))

            def restart() -> None:
                assert lost.wait(NEVER_SECONDS)
                cluster.restart()  # what a coordinator remembers of the epoch before is not in its log

            restarting = threading.Thread(target=restart)
            restarting.start()
            writer.write({(topic, 0): [(b"k", b"through the proxy")]})
            restarting.join()
            assert writer.identity.producer_id != held[OWN].producer_id
            writer.confirm()
        broker.begin_anew()
        for name in (TAKEN_AFTER, TAKEN_BEFORE):
            newer = broker.loop.run(broker.coordinator(name).init)
            assert newer.producer_id != held[name].producer_id
            with pytest.raises(Fenced):
                broker.proven(name, held[name])
            broker.write(name, newer, commit=True)  # it was not disturbed
            with pytest.raises(Fenced):
                broker.proven(name, held[name])
    finally:
        broker.close()
    through_the_proxy = b"through the proxy"
    wanted = [TAKEN_AFTER, TAKEN_AFTER, TAKEN_BEFORE]
    # A coordinator answers a commit before its marker is written.
    until(lambda: len(read_all(cluster.bootstrap, topic)[0]) >= len(wanted) + 2)
    found = [record.value for record in read_all(cluster.bootstrap, topic)[0]]
    assert [value for value in found if value != through_the_proxy] == [name.encode() for name in wanted]
    assert found.count(through_the_proxy) == 2  # after an unknown outcome it is written again
