"""What the model takes for granted of a broker, asked of a real one under both transaction protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.drills.model.broker import Contents, Id, add, commit, init, settle
from tests.opened import fenced_writer
from tests.waiting import until
from tools.kafka import SandboxCluster, read_all

from ferry.clusters.groups.coordination import Coordinator, Fenced, OutcomeUnknown, ProducerIdentity
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.event_loop import EventLoop, Wakeup
from ferry.clusters.net.leaders import Leaders
from ferry.config import ClientRole, Flow
from ferry.copying.internal_writer import InternalWriter

pytestmark = pytest.mark.brokers


class RealId:
    """A transactional id of a real broker, with the requests of the model's."""

    def __init__(self, flow: Flow, topic: str, name: str, *, bumps: bool) -> None:
        self._loop, self._topic, self._name, self._bumps = EventLoop(), topic, name, bumps
        self._connection = ClusterConnection(self._loop, flow.target, ClientRole.PRODUCER)
        self._loop.run(self._connection.open)
        self._coordinator = Coordinator(self._loop, self._connection, name, "g")
        self._first = self._loop.run(self._coordinator.init)

    def close(self) -> None:
        self._connection.close()
        self._loop.close()

    def _relative(self, pair: ProducerIdentity) -> int:
        assert pair.producer_id == self._first.producer_id
        return pair.epoch - self._first.epoch

    def _pair(self, epoch: int) -> ProducerIdentity:
        return ProducerIdentity(self._first.producer_id, self._first.epoch + epoch)

    def _asked(self, request: Callable[..., Any], *arguments: Any) -> int | None:
        try:
            return self._relative(self._loop.run(request, *arguments))
        except (Fenced, OutcomeUnknown):
            return None

    def init(self, epoch: int | None) -> int | None:
        return self._asked(self._coordinator.init, *(() if epoch is None else (self._pair(epoch),)))

    def settle(self, epoch: int) -> int | None:
        async def both(pair: ProducerIdentity) -> ProducerIdentity:
            return await self._coordinator.prove(pair, transactions_v2=self._bumps)

        return self._asked(both, self._pair(epoch))

    def add(self, epoch: int, text: str) -> int | None:
        async def append(pair: ProducerIdentity) -> ProducerIdentity:
            leaders = Leaders(self._connection, [self._topic])
            await leaders.refresh()
            writer = InternalWriter(self._connection, leaders, Wakeup(self._loop), self._name, transactions_v2=self._bumps)
            writer.adopt(pair)
            if not self._bumps:
                await self._coordinator.add_partitions(pair, [(self._topic, 0)])
            await writer.append({(self._topic, 0): [(b"k", text.encode())]})
            return pair

        return self._asked(append, self._pair(epoch))

    def commit(self, epoch: int) -> int | None:
        async def end(pair: ProducerIdentity) -> ProducerIdentity:
            return await self._coordinator.end(pair, committed=True, transactions_v2=self._bumps)

        return self._asked(end, self._pair(epoch))


@pytest.fixture(params=[True, False], ids=["kip-890", "older protocol"])
def target(request: pytest.FixtureRequest) -> tuple[SandboxCluster, bool]:
    if request.param:
        return request.getfixturevalue("target_cluster"), True
    return request.getfixturevalue("cluster_factory")(features=("transaction.version=1",)), False


@pytest.fixture
def real(target: tuple[SandboxCluster, bool], flow: Flow, topic: str) -> Iterator[RealId]:
    found = RealId(flow, topic, f"{topic}-id", bumps=target[1])
    yield found
    found.close()


@pytest.fixture
def topic(target: tuple[SandboxCluster, bool], topic_factory: Callable[..., str]) -> str:
    return topic_factory(target[0])


@pytest.fixture
def flow(target: tuple[SandboxCluster, bool], flow_factory: Callable[..., Flow]) -> Flow:
    return flow_factory("A->B.topics = x", target=target[0])


def test_the_model_answers_as_the_broker_does(target: tuple[SandboxCluster, bool], real: RealId, topic: str) -> None:
    model, there, bumps = Id(0), Contents(), target[1]

    def same(what: str, epoch: int | None) -> int | None:
        nonlocal model, there
        text = f"{what} {epoch}"
        match what:
            case "init":
                model, wanted = init(model, epoch, bumps=bumps)
                found = real.init(epoch)
            case "settle":
                model, wanted = settle(model, epoch or 0, bumps=bumps)
                found = real.settle(epoch or 0)
            case "add":
                model, wanted = add(model, epoch or 0, Contents(records=((text, 0),)))
                found = real.add(epoch or 0, text)
            case _:
                model, more, wanted = commit(model, epoch or 0, bumps=bumps)
                there, found = there.plus(more), real.commit(epoch or 0)
        assert found == wanted, text
        return found

    # Two attempts of one task that init in step, each with the pair of the other's last init, hold the same pair.
    assert [same("init", 0), same("init", 0)] == [1, 1]
    assert [same("init", 1), same("init", 1)] == [2, 2]
    assert same("init", 0) is None
    # To settle aborts what is open and leaves the id held, by the holder alone: who holds it no longer disturbs nobody.
    same("add", 2)
    held = same("settle", 2)
    same("add", held)
    assert same("settle", 0) is None
    held = same("commit", held)
    assert held is not None
    # Nothing is open.
    held = same("settle", held)
    # After a commit whose answer was lost, the pair of before is still good for an init; nobody else's is.
    same("add", held)
    same("commit", held)
    held = same("settle", held)
    assert held is not None
    assert same("settle", 1) is None
    # A refused init is no such thing: it aborts what the holder has open.
    same("add", held)
    assert same("init", 0) is None
    assert same("commit", held) is None
    # Nor is one of the holder itself before KIP-890: it is fenced with its own transaction.
    held = same("init", None)
    same("add", held)
    assert (same("init", held) is not None) == bumps
    held = same("init", None)
    same("add", held)
    same("init", None)
    assert same("settle", held) is None
    assert same("add", held) is None
    assert values_in(target[0], topic, len(there.records)) == [text.encode() for text, _ in there.records]


def values_in(cluster: SandboxCluster, topic: str, expected: int) -> list[bytes | None]:
    """What is committed. By the older protocol a commit is answered before its markers are written."""
    until(lambda: len(read_all(cluster.bootstrap, topic)[0]) >= expected)
    return [record.value for record in read_all(cluster.bootstrap, topic)[0]]


def test_the_proof_of_an_older_run_does_not_disturb_the_write_of_a_newer_one(
    target: tuple[SandboxCluster, bool], flow: Flow, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, disturbed = InternalWriter.append, []
    with fenced_writer(flow, f"{topic}-run") as older:
        stale = older.identity
        with fenced_writer(flow, f"{topic}-run") as newer:

            async def meets(writer: InternalWriter, records: Any) -> Any:
                places = await append(writer, records)
                if not disturbed:
                    disturbed.append(stale)
                    with pytest.raises(Fenced):
                        await newer._coordinator.prove(stale, transactions_v2=target[1])
                return places

            monkeypatch.setattr(InternalWriter, "append", meets)
            newer.write({(topic, 0): [(b"k", b"v")]})
    assert disturbed
    assert values_in(target[0], topic, 1) == [b"v"]
