"""Connections to real brokers beside one that does not answer, and to one that stops answering."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from kafka.future import Future
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from tests.conftest import Lab
from tools.kafka import SandboxCluster

from ferry.clusters.logs.producing import BatchesRequest
from ferry.clusters.net.connections import ClusterConnection, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop, Wakeup
from ferry.clusters.net.leaders import Leaders
from ferry.config import ClientRole, Flow, load_config
from ferry.ending import interrupted_by_signals

pytestmark = pytest.mark.brokers


def test_a_connection_that_is_dropped_with_unsent_bytes_is_replaced(
    flow_factory: Callable[..., Flow], cluster_factory: Callable[..., SandboxCluster]
) -> None:
    target = cluster_factory()
    loop = EventLoop()
    connection = ClusterConnection(loop, flow_factory(target=target).target, ClientRole.PRODUCER)

    async def ask() -> int:
        answer = await connection.send(MetadataRequest(topics=[]), 1)
        return len(answer.brokers)

    async def pause_and_drop() -> int:
        assert await ask() == 1
        target.pause()
        try:
            batch = memoryview(bytes(4 << 20))
            waiting = [connection.submit(BatchesRequest([("none", uuid4(), [(0, (batch,))])], None), 1) for _ in range(8)]
            await loop.sleep(0.1)
            connection.disconnect()
            assert all(future.failed() for future in waiting)
        finally:
            target.resume()
        return await ask()

    try:
        loop.run(connection.open)
        assert loop.run(pause_and_drop) == 1
    finally:
        connection.close()
        loop.close()


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


@contextmanager
def connected(flow: Flow) -> Iterator[tuple[EventLoop, ClusterConnection]]:
    loop = EventLoop()
    connection = ClusterConnection(loop, flow.source, ClientRole.CONSUMER)
    try:
        loop.run(connection.open)
        yield loop, connection
    finally:
        connection.close()
        loop.close()


def knowing(ports: dict[int, int]) -> Any:
    """A Metadata answer with these brokers: port by node id."""
    brokers = [(node, "127.0.0.1", port, None) for node, port in ports.items()]
    return SimpleNamespace(API_VERSION=9, brokers=brokers, controller_id=-1, cluster_id="x")


def test_one_bootstrap_server_without_answer_does_not_prevent_a_connection(lab: Lab, silent: int) -> None:
    """Ten times: the order of the servers is a matter of luck."""
    for order in range(10):
        servers = [f"127.0.0.1:{silent}", lab.source.bootstrap]
        flow = lab.flow(source=SimpleNamespace(bootstrap=",".join(servers[:: 1 - order % 2 * 2])))
        with connected(flow) as (_, connection):
            assert connection.brokers() == (1,)


def test_one_broker_without_answer_does_not_delay_others(lab: Lab, silent: int) -> None:
    flow = lab.flow()
    for _ in range(10):
        with connected(flow) as (loop, connection):
            connection.learn_brokers(knowing({1: lab.source.port, 2: silent}))
            assert loop.run(connection.send, ApiVersionsRequest(client_software_name="ferry", client_software_version="1")).error_code == 0


@pytest.mark.parametrize("arrived", [[0, 0], [700, 700], [700, 800, 900, 900]], ids=["nothing", "earlier answers", "an answer now"])
def test_while_an_answer_arrives_no_other_broker_is_asked(
    arrived: list[int], lab: Lab, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`arrived`: bytes over the connection of the broker that was asked, when it was asked and after each wait."""
    monkeypatch.setattr("ferry.clusters.net.connections.NEXT_BROKER_SECONDS", 0.05)
    with connected(lab.flow()) as (loop, connection):
        connection.learn_brokers(knowing({2: silent, 3: silent}))
        submit, waits, asked_after = connection.submit, list[float](), list[int]()

        class CountingWakeup(Wakeup):
            async def wait(self, seconds: float) -> None:
                waits.append(seconds)
                await super().wait(seconds)

        def counted(*arguments: Any) -> Future:
            asked_after.append(len(waits))
            if len(asked_after) > 1:
                raise RequestNotSent("enough")
            return submit(*arguments)

        monkeypatch.setattr("ferry.clusters.net.connections.Wakeup", CountingWakeup)
        monkeypatch.setattr(connection, "_arrived", lambda asked: arrived[len(waits)] if asked else 0)
        monkeypatch.setattr(connection, "submit", counted)
        with pytest.raises(RequestNotSent, match="enough"):
            loop.run(connection.send, MetadataRequest(topics=[]))
    assert asked_after == [0, len(arrived) - 1]


def test_a_broker_that_came_back_is_known_with_its_partitions(lab: Lab) -> None:
    topic = lab.topic(lab.source)
    with connected(lab.flow()) as (loop, connection):
        connection.learn_brokers(knowing({9: lab.source.port}))
        leaders = Leaders(connection, [topic])
        loop.run(leaders.refresh)
        assert loop.run(connection.send, MetadataRequest(topics=[]), leaders.of(topic, 0).node).brokers


def test_an_unknown_broker_is_looked_up(lab: Lab) -> None:
    """As the coordinator of a group that moved to a broker that has just joined."""

    async def until_known() -> int:
        failed = 0
        while True:
            try:
                await connection.send(MetadataRequest(topics=[]), 1)
            except RequestNotSent:
                failed += 1
                assert failed < 1_000
                await loop.sleep(0.02)
            else:
                return failed

    with connected(lab.flow()) as (loop, connection):
        connection.disconnect()  # the bootstrap server is the broker, and its connection stays
        connection.learn_brokers(knowing({9: lab.source.port}))
        assert loop.run(until_known) > 0


def test_the_connection_to_a_bootstrap_server_becomes_that_of_its_broker(lab: Lab) -> None:
    with connected(lab.flow()) as (loop, connection):
        kept = connection._manager._conns
        assert list(kept) == [1]
        loop.run(connection.send, MetadataRequest(topics=[]), 1)
        assert len(kept) == 1
        measured = connection.round_trip()
        assert 0 < measured < 1.0, "the kernel measures it"
        with socket.socket() as unconnected:
            kept["closing"] = SimpleNamespace(transport=SimpleNamespace(_sock=unconnected))
            assert 0 < connection.round_trip() <= measured, "who knows none says nothing about the distance"
        assert 0 < connection.round_trip() <= measured
        del kept["closing"]


@pytest.fixture
def heard(number: signal.Signals) -> Iterator[None]:
    """A signal that was ignored from the beginning stays so: under nohup, SIGHUP."""
    before = signal.signal(number, signal.SIG_DFL)
    yield
    signal.signal(number, before)


@pytest.mark.unit
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_loop_between_two_tasks(number: signal.Signals) -> None:
    """kafka-python's loop keeps what a task raises, KeyboardInterrupt too; and whoever waits for that task would wait for ever."""
    loop = EventLoop()
    ended = []

    async def other() -> None:
        signal.raise_signal(number)
        ended.append(number)

    async def asked() -> None:
        loop.start(other)
        await Future()

    with interrupted_by_signals(), pytest.raises(KeyboardInterrupt):
        loop.run(asked)
    assert ended == [number]
    with interrupted_by_signals(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    loop.run(loop.sleep, 0.0)
    loop.close()


@pytest.mark.unit
def test_a_connection_that_was_closed_does_not_look_for_idle_sockets_again(tmp_path: Path) -> None:
    """A command has one loop, and makes connections for each lane."""
    lines = ("clusters = A, B", "A.bootstrap.servers = 127.0.0.1:1", "B.bootstrap.servers = 127.0.0.1:2", "A->B.enabled = true")
    (tmp_path / "mm2.properties").write_text("\n".join(lines))
    cluster = load_config(tmp_path / "mm2.properties").flow("A->B").source
    loop = EventLoop()
    connection = ClusterConnection(loop, cluster, ClientRole.CONSUMER)
    look, waiting = connection._manager.close_idle_connections, loop.selector._scheduled
    look()
    before = len(waiting)
    look()
    assert len(waiting) == before + 1, "it looks again"
    connection.close()
    look()
    assert len(waiting) == before + 1
    loop.close()


@pytest.mark.unit
def test_a_signal_ends_a_loop_that_waits_for_sockets() -> None:
    loop = EventLoop()
    timer = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGTERM))
    with interrupted_by_signals():
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            loop.run(loop.sleep, 60.0)
    timer.join()
    loop.close()
