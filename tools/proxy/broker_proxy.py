"""A TCP proxy before one broker listener, in a thread of its own, controlled by the test that started it.

    with BrokerProxy(behind=cluster_port, port=advertised_port, seed=7) as proxy:
        proxy.link = Link(delay=0.05, jitter=0.02)               # both ways
        late = proxy.add(Rule(END_TXN, Action.DELAY_REQUEST, seconds=8, containing=b"ferry-A->B-0"))
        assert late.wait(30)

Every call returns when what it asks for is in force. Brokers must advertise the proxy's port (`listener.py`), or clients leave it with
their first metadata. What the proxy does not understand (TLS) it cannot forward.
"""

from __future__ import annotations

import asyncio
import random
import threading
from asyncio import Server, StreamReader, StreamWriter
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from tools.proxy.connection import Conditions, Connection, Exchange
from tools.proxy.rules import Link, Rule, Way
from tools.proxy.service import Service

HOST = "127.0.0.1"
Answer = TypeVar("Answer")
# The loop only ever forwards: it answers at once unless it is broken.
ANSWER_SECONDS = 10.0


class BrokerProxy:
    """Listens on `port` of 127.0.0.1 and forwards to `behind` of `host`, as if that broker were one of `service`."""

    def __init__(self, behind: int, port: int, seed: int = 0, service: Service | None = None, host: str = HOST) -> None:
        self.behind, self.port, self._host = behind, port, host
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{port}", daemon=True)
        self._conditions = Conditions(random.Random(seed))  # noqa: S311 - it draws faults, not secrets
        self._conditions.service = service
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._server: Server | None = None
        for event in self._conditions.open.values():
            event.set()

    def __enter__(self) -> BrokerProxy:
        self._thread.start()
        self.accept()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.refuse()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(ANSWER_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ANSWER_SECONDS)
        self._loop.close()

    @property
    def bootstrap(self) -> str:
        """Address for clients."""
        return f"{HOST}:{self.port}"

    @property
    def seen(self) -> Counter[int]:
        """How many requests of each api key came by."""
        return Counter(self._conditions.seen)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    @property
    def link(self) -> dict[Way, Link]:
        """Conditions of both ways now; assign one Link for both, or a dict."""
        return dict(self._conditions.link)

    @link.setter
    def link(self, link: Link | dict[Way, Link]) -> None:
        both = dict.fromkeys(Way, link) if isinstance(link, Link) else link
        self._call(lambda: self._conditions.link.update(both))

    @property
    def service(self) -> Service | None:
        """What it plays. Clients that are connected know what the last one offered: `cut` them after a change."""
        return self._conditions.service

    @service.setter
    def service(self, service: Service | None) -> None:
        self._call(lambda: setattr(self._conditions, "service", service))

    @contextmanager
    def recording(self) -> Iterator[list[Exchange]]:
        """The exchanges that come by meanwhile."""
        found: list[Exchange] = []
        self._call(lambda: setattr(self._conditions, "exchanges", found))
        try:
            yield found
        finally:
            self._call(lambda: setattr(self._conditions, "exchanges", None))

    def add(self, rule: Rule) -> Rule:
        """A rule for requests from now on; the first of several that is met counts."""
        self._call(lambda: self._conditions.rules.append(rule))
        return rule

    def remove(self, rule: Rule) -> None:
        """Not any more."""
        self._call(lambda: self._conditions.rules.remove(rule))

    def hold(self, *ways: Way) -> None:
        """A stalled network (default: both ways): what is sent arrives after `release`, as TCP would bring it."""
        self._call(lambda: [self._conditions.open[way].clear() for way in ways or Way])

    def release(self) -> None:
        """Let through what was held."""
        self._call(lambda: [event.set() for event in self._conditions.open.values()])

    def drop(self, *ways: Way) -> None:
        """A black hole (default: both ways): connections are accepted and stay, nothing arrives."""
        self._call(lambda: self._conditions.dropped.update(ways or Way))

    def restore(self) -> None:
        """Close the black hole. Connections that lost something are cut: their streams have gaps."""
        self._call(self._restore)

    def cut(self) -> int:
        """Reset all connections; how many."""
        return self._call(lambda: len([connection.cut() for connection in self._connections]))

    def half_close(self, way: Way) -> int:
        """End this direction of all connections, the other stays; how many."""
        return self._call(lambda: len([connection.end(way) for connection in self._connections]))

    def refuse(self) -> None:
        """New connections are refused; those that are there stay."""
        asyncio.run_coroutine_threadsafe(self._refuse(), self._loop).result(ANSWER_SECONDS)

    def accept(self) -> None:
        """Take new connections (again)."""
        asyncio.run_coroutine_threadsafe(self._accept(), self._loop).result(ANSWER_SECONDS)

    async def _accept(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, HOST, self.port, reuse_address=True)

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            broker = await asyncio.open_connection(self._host, self.behind)
        except OSError:  # as if the client had tried itself
            writer.transport.abort()
            return
        connection = Connection(self._conditions, (reader, writer), broker)
        self._connections[connection] = asyncio.current_task()
        try:
            await connection.run()
        except asyncio.CancelledError:  # the end of the proxy
            pass
        finally:
            self._connections.pop(connection, None)

    async def _end(self) -> None:
        tasks = list(self._connections.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the next round

    def _restore(self) -> None:
        self._conditions.dropped.clear()
        for connection in self._connections:
            if connection.incomplete:
                connection.cut()

    def _call(self, action: Callable[[], Answer]) -> Answer:
        async def act() -> Answer:
            return action()

        return asyncio.run_coroutine_threadsafe(act(), self._loop).result(ANSWER_SECONDS)
