"""What stands for sockets in a world: kafka-python's connections hand their requests to simulated brokers, and get decoded answers.

Everything above stays as it is: Ferry's connections and event loop, kafka-python's manager, connections, time-outs and pauses. Only three
classes are others: the selector, the transport of a connection, and its parser, which leaves messages as they are. A broker handles the
requests of one connection one after the other: an answer that waits holds up those behind it (SocketServer mutes the channel).

Both ends of a connection are closed apart. What a client sent before it was killed, or closed the connection, may still arrive: late, if
the broker reads this connection only then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import kafka.errors as kafka_errors
import kafka.net.connection
import kafka.net.selector
import pytest
from tests.simulation.canonical import in_order
from tests.simulation.selecting import NoSockets
from tests.simulation.steps import Reply
from tests.simulation.telling import told
from tests.simulation.world import Fate, World

from ferry.clusters.net import connections

# The longest that a late answer takes: more than any of Ferry's time-outs.
LATE_SECONDS = 60.0
# The longest until a broker reads a connection that its client has given up: a quota may mute it for so long. Most wait not so long.
STRAY_SECONDS = 90.0
STRAY = (0.005, 0.01, 0.02, 0.05, 0.3, STRAY_SECONDS)
Exchange = tuple[int, Any]  # correlation id, and request or answer


class MessageParser:
    """Numbers requests, and leaves them and their answers as they are."""

    def __init__(self, **_: Any) -> None:
        self._number, self._waiting, self.bytes_received = 0, list[Exchange](), 0

    def send_request(self, request: Any) -> int:
        self._number += 1
        self._waiting.append((self._number, request))
        return self._number

    def send_bytes(self) -> list[Exchange]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def receive_bytes(self, answers: list[Exchange]) -> list[Exchange]:
        self.bytes_received += len(answers)
        return answers


class WorldTransport:
    """A connection to one broker, which a process has opened."""

    def __init__(self, world: World, host: str, port: int) -> None:
        self._world, self._address, self._process = world, (host, port), world.current
        self._cluster, self._node = world.clusters[host, port]
        self._protocol: Any = None
        self._queue: deque[tuple[Exchange, Fate]] = deque()
        self._busy, self._open, self._taken = False, True, True  # `_taken`: the broker's end is open
        self._arrived = self._delivered = 0.0
        self.last_activity = world.now
        self._who = world.current.name if world.current else "test"
        self._where = f"{self._cluster.state.settings.cluster_id} {self._node}"
        world.hung_up.setdefault((id(self._cluster), self._node), []).append(self._lose)
        if world.current is not None:
            world.current.cut.append(self._cut)

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def resume_reading(self) -> None:
        """It always reads."""

    def getPeer(self) -> tuple[str, int]:  # noqa: N802 - kafka-python's name
        return self._address

    def host_port(self) -> str:
        return "{}:{}".format(*self._address)

    def write(self, exchanges: list[Exchange]) -> None:
        """Requests leave in order, and arrive in order."""
        for exchange in exchanges:
            if self._process is None:
                self._send(exchange)
            else:
                self._process.outbox.append((self._address, partial(self._send, exchange)))

    def _send(self, exchange: Exchange) -> None:
        process = self._process
        if not self._open or (process is not None and process.killed):
            return
        if process is not None and process.frozen:
            process.held.append(lambda: self._send(exchange))
            return
        in_order(exchange[1])
        fate = self._world.fate(self._who, exchange[1])
        if process is not None and (process.killed or process.frozen):  # just now
            self._send(exchange)
            return
        if fate is Fate.STRAY:
            self._world.note(lambda: f"{self._who} to {self._where}, which does not read it now: {told(exchange[1])}")
            self._arrived = max(self._arrived, self._world.now + self._world.chance.random() * self._world.chance.choice(STRAY))
            self._world.after(self._world.delay(), lambda: self._tell(self._abandon))
        else:
            self._arrived = max(self._arrived, self._world.now + self._world.delay())
        self._world.at(self._arrived, lambda: self._arrive(exchange, fate))

    def _arrive(self, exchange: Exchange, fate: Fate) -> None:
        if self._taken:
            self._queue.append((exchange, fate))
            self._handle_next()

    def _handle_next(self) -> None:
        if self._busy or not self._queue or not self._taken:
            return
        self._busy = True
        (number, request), fate = self._queue.popleft()
        if fate is Fate.NOT_ASKED:
            self._world.note(lambda: f"{self._who} to {self._where}, which closes the connection: {told(request)}")
            self._lose()
            return
        self._world.note(lambda: f"{self._who} to {self._where}: {told(request)}")
        broker = self._cluster.state.brokers[self._node]
        broker.unready = fate is Fate.UNREADY
        reply = self._cluster.submit(request, self._node)
        broker.unready = False
        reply.then(lambda reply: self._answered(number, request, reply, fate))

    def _answered(self, number: int, request: Any, reply: Reply, fate: Fate) -> None:
        self._busy = False
        if fate is Fate.CRASH and not reply.lost:
            self._taken = False  # a connection's answers come in order: now none of a later request may come
            self._queue.clear()
            self._world.note(f"{self._where} fails before it answers {request.name} of {self._who}")
            self._world.at(self._world.now, lambda: self._world.crash(self._cluster, self._node))
            return
        if reply.lost or fate is Fate.UNANSWERED:
            self._world.note(lambda: f"{self._where} to {self._who}: no answer to {request.name}, the connection is closed")
            self._lose()
            return
        late = self._world.chance.random() * LATE_SECONDS if fate is Fate.LATE else 0.0
        self._delivered = max(self._delivered, self._world.now + self._world.delay() + late)
        self._world.at(self._delivered, lambda: self._deliver((number, reply.answer), request))
        self._handle_next()

    def _lose(self) -> None:
        """The broker's end is closed: what arrives now is not read, and the client learns it soon."""
        self._taken = False
        self._queue.clear()
        self._world.after(self._world.delay(), lambda: self._tell(self._abandon))

    def _tell(self, act: Callable[[], None]) -> None:
        if self._process is None:
            act()
        else:
            self._process.tell(act)

    def _deliver(self, exchange: Exchange, request: Any) -> None:
        if self._open:
            self._world.note(
                lambda: f"{self._where} to {self._who}: {request.name.removesuffix('Request')} is answered {told(exchange[1])}"
            )
            self._tell(lambda: self._take(exchange))

    def _take(self, exchange: Exchange) -> None:
        if self._open:
            self.last_activity = self._world.now
            self._protocol.data_received([exchange])

    def _abandon(self) -> None:
        self._close(kafka_errors.KafkaConnectionError("socket disconnected"))

    def _cut(self) -> None:
        """The process is killed. Either all that it sent still arrives, or nothing more."""
        self._open = False
        self._taken = self._taken and self._world.chance.random() < 0.5

    def abort(self, problem: BaseException | None = None) -> None:
        """The client closes its end. Either all that it sent still arrives, or nothing more."""
        if self._open:
            self._taken = self._taken and self._world.chance.random() < 0.5
        self._close(problem)

    def _close(self, problem: BaseException | None) -> None:
        if self._open:
            self._open = False
            self._protocol.connection_lost(problem)

    def close(self) -> None:
        self.abort()


class WorldConnections(connections._Connections):
    """Ferry's connections, over a world's transports."""

    transport: type[WorldTransport] = WorldTransport

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        world: World = self._net._selector.world
        await self._net.sleep(world.delay())
        found = world.clusters.get((node.host, node.port))
        if found is None or not found[0].state.brokers[found[1]].up:
            raise kafka_errors.KafkaConnectionError("Connection refused")
        self._reached = True
        return self.transport(world, node.host, node.port)


def connect_to(monkeypatch: pytest.MonkeyPatch, kind: type[WorldConnections] = WorldConnections) -> None:
    """Let new connections of this process be in the world of their event loop."""
    monkeypatch.setattr(kafka.net.selector, "socket", NoSockets)
    if kind.transport is WorldTransport:
        monkeypatch.setattr(kafka.net.connection, "KafkaProtocol", MessageParser)
    monkeypatch.setattr(connections, "_Connections", kind)
