"""The connection that all questions of a command to one cluster share, and the event loop of all connections (see client_cache.py)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Generic, TypeVar

from kafka.future import Future

from ferry.clusters.net.client_cache import lost, shared
from ferry.clusters.net.connections import BOOTSTRAP_MILLISECONDS, ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop
from ferry.config import ClientRole, Cluster

T = TypeVar("T")
U = TypeVar("U")

# If no broker has answered for this time, the next question drops the connections: the other end, or a machine in between, may have closed
# them.
IDLE_SECONDS = 30.0
# A person waits for the first answer of a command. A far cluster takes a connection within a second; a lost SYN is sent again after one
# second and after three.
SILENT_SECONDS = 6.0
CONTACT_MILLISECONDS = 9_000


class Connected:
    """An open connection to a cluster. Errors as of `ClusterConnection.open`."""

    def __init__(self, loop: EventLoop, cluster: Cluster, role: ClientRole, milliseconds: float, silent_seconds: float = math.inf) -> None:
        self.loop, self.connection = loop, ClusterConnection(loop, cluster, role)
        self._started = list[Future]()
        try:
            loop.run(self.connection.open, milliseconds, silent_seconds)
        except BaseException:
            self.close()
            raise

    def start(self, ask: Callable[..., Coroutine[Any, Any, object]], *arguments: Any) -> Future:
        """Start `ask(connection, *arguments)`."""
        return self._start(ask, self.connection, *arguments)

    def run(self, coroutine: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Run a question over the connection to its end; its result."""
        found: T = self.loop.result(self._start(coroutine, *arguments))
        return found

    def _start(self, coroutine: Callable[..., Coroutine[Any, Any, object]], *arguments: Any) -> Future:
        self._started = [future for future in self._started if not future.is_done]
        if not self._started and time.monotonic() - self.connection.last_answer > IDLE_SECONDS:
            self.connection.disconnect()  # the other end may have done so already
        self._started.append(self.loop.start(coroutine, *arguments))
        return self._started[-1]

    def round_trip(self) -> float:
        """Seconds of the shortest round trip that the kernel has seen on its connections; 0: no broker answers.

        It sends a request if no connection is open: connections to bootstrap servers that are no brokers themselves are closed by now.
        """
        if not self.connection.round_trip():
            with suppress(RequestNotSent, RequestLost):
                self.run(self.connection.refresh_brokers)
        return self.connection.round_trip()

    def close(self) -> None:
        self.connection.close()


@contextmanager
def connected(
    cluster: Cluster, role: ClientRole = ClientRole.ADMIN, milliseconds: float = BOOTSTRAP_MILLISECONDS, silent_seconds: float = math.inf
) -> Iterator[Connected]:
    """The connection that users in a scope of `kept_clients` share; roles with the same settings share one. All have one event loop.

    `milliseconds`: after this time a cluster that has never answered is unreachable, after `silent_seconds` one that takes no connection.
    """
    same = next(other for other in ClientRole if cluster.of_role(other) == cluster.of_role(role))

    def failed(problem: Exception) -> bool:
        return isinstance(problem, RequestNotSent | RequestLost) or lost(problem)

    with (
        shared("loop", EventLoop, failed=lambda _: False) as loop,
        shared(
            "connection", lambda: Connected(loop, cluster, role, milliseconds, silent_seconds), cluster, same, loop, failed=failed
        ) as client,
    ):
        yield client


class Asked(Generic[T]):
    """A question under way. Its answer arrives while the caller asks other questions, or waits for it."""

    def __init__(self, wait: Callable[[], T]) -> None:
        self._wait = wait

    def answer(self) -> T:
        """Wait for it; to be called once."""
        return self._wait()

    def then(self, use: Callable[[T], U]) -> Asked[U]:
        """A question whose answer is what `use` makes of this one's."""
        return Asked(lambda: use(self._wait()))


class ConnectedCluster:
    """One cluster of a config, with the connections that all questions to it share. It connects at the first question."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def alias(self) -> str:
        return self.cluster.alias

    def connected(
        self, role: ClientRole = ClientRole.ADMIN, milliseconds: float = BOOTSTRAP_MILLISECONDS, silent_seconds: float = math.inf
    ) -> AbstractContextManager[Connected]:
        return connected(self.cluster, role, milliseconds, silent_seconds)

    def first_contact(self) -> None:
        """Connect now, so that a command names a cluster that is away before it waits for anything else. Errors as of `connected`."""
        with self.connected(milliseconds=CONTACT_MILLISECONDS, silent_seconds=SILENT_SECONDS):
            pass

    def begin_asking(
        self,
        ask: Callable[..., Coroutine[Any, Any, T]],
        *arguments: Any,
        role: ClientRole = ClientRole.ADMIN,
        milliseconds: float = BOOTSTRAP_MILLISECONDS,
    ) -> Asked[T]:
        """Ask `ask(connection, *arguments)`. Raises what `connected` raises; the answer raises what `ask` raises.

        If the connection has failed for another user meanwhile, the answer asks again.
        """
        with self.connected(role, milliseconds) as client:
            started = client.start(ask, *arguments)

        def wait() -> T:
            with self.connected(role, milliseconds) as now:
                found: T = now.loop.result(started if now is client else now.start(ask, *arguments))
            return found

        return Asked(wait)

    def ask(
        self,
        ask: Callable[..., Coroutine[Any, Any, T]],
        *arguments: Any,
        role: ClientRole = ClientRole.ADMIN,
        milliseconds: float = BOOTSTRAP_MILLISECONDS,
    ) -> T:
        """The result of `ask(connection, *arguments)`. Raises what `connected` and `ask` raise."""
        with self.connected(role, milliseconds) as client:
            return client.run(ask, client.connection, *arguments)
