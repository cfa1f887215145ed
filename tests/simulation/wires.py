"""What stands for sockets in a world: kafka-python's connections hand their requests to simulated brokers, and get decoded answers.

Everything above stays as it is: Ferry's connections and event loop, kafka-python's manager, connections, time-outs and pauses. Only three
classes are others: the selector, the transport of a connection, and its parser, which leaves messages as they are. A broker handles the
requests of one connection one after the other: an answer that waits holds up those behind it (SocketServer mutes the channel).
"""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Mapping
from typing import Any

import kafka.errors as kafka_errors
import kafka.net.connection
import pytest
from tests.simulation.steps import Reply
from tests.simulation.world import Fate, World

from ferry.clusters.net import connections, event_loop

# The longest that a late answer takes: more than any of Ferry's time-outs.
LATE_SECONDS = 60.0
Exchange = tuple[int, Any]  # correlation id, and request or answer


class WorldSelector(selectors.BaseSelector):
    """Waits by letting the world go on. No socket ever becomes ready."""

    def __init__(self, world: World) -> None:
        self._world, self._keys = world, dict[Any, selectors.SelectorKey]()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._keys[fileobj] = selectors.SelectorKey(fileobj, -1, events, data)
        return self._keys[fileobj]

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj]

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout != 0:
            self._world.wait(timeout)
        return []


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
    """A connection to one broker."""

    def __init__(self, world: World, host: str, port: int) -> None:
        self._world, self._address = world, (host, port)
        self._cluster, self._node = world.clusters[host, port]
        self._protocol: Any = None
        self._queue: deque[Exchange] = deque()
        self._busy, self._open, self._arrived = False, True, 0.0
        self.last_activity = world.now
        world.hung_up.setdefault((id(self._cluster), self._node), []).append(self._lose)

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
            self._arrived = max(self._arrived, self._world.now + self._world.delay())
            self._world.at(self._arrived, lambda exchange=exchange: self._arrive(exchange))  # type: ignore[misc]

    def _arrive(self, exchange: Exchange) -> None:
        if self._open:
            self._queue.append(exchange)
            self._handle_next()

    def _handle_next(self) -> None:
        if self._busy or not self._queue or not self._open:
            return
        self._busy = True
        number, request = self._queue.popleft()
        fate = self._world.fate()
        self._world.note(f"{self._address[1]} {request.name}: {fate.value}")
        if fate is Fate.NOT_ASKED:
            self._lose()
        else:
            self._cluster.submit(request, self._node).then(lambda reply: self._answered(number, reply, fate))

    def _answered(self, number: int, reply: Reply, fate: Fate) -> None:
        if reply.lost or fate is Fate.UNANSWERED:
            self._lose()
        else:
            late = self._world.random.random() * LATE_SECONDS if fate is Fate.LATE else 0.0
            self._world.after(self._world.delay() + late, lambda: self._deliver((number, reply.answer)))

    def _lose(self) -> None:
        self._world.after(self._world.delay(), lambda: self.abort(kafka_errors.KafkaConnectionError("socket disconnected")))

    def _deliver(self, exchange: Exchange) -> None:
        self._busy = False
        if self._open:
            self.last_activity = self._world.now
            self._protocol.data_received([exchange])
            self._handle_next()

    def abort(self, problem: BaseException | None = None) -> None:
        """Close at once; what is in flight is lost."""
        if self._open:
            self._open = False
            self._protocol.connection_lost(problem)

    def close(self) -> None:
        self.abort()


class WorldConnections(connections._Connections):
    """Ferry's connections, over a world's transports."""

    world: World

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        await self._net.sleep(self.world.delay())
        found = self.world.clusters.get((node.host, node.port))
        if found is None or not found[0].state.brokers[found[1]].up:
            raise kafka_errors.KafkaConnectionError("Connection refused")
        self._reached = True
        return WorldTransport(self.world, node.host, node.port)


def connect_to(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every new connection and event loop of this process be in the world."""
    monkeypatch.setattr(event_loop, "SocketSelector", lambda: WorldSelector(world))
    monkeypatch.setattr(kafka.net.connection, "KafkaProtocol", MessageParser)
    monkeypatch.setattr(connections, "_Connections", type("OfThisWorld", (WorldConnections,), {"world": world}))
