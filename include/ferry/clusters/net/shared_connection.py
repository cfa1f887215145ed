"""The connections that all questions to one cluster share, also at the same time, so that a command connects to a cluster once.

A connection gets no further users after a signal, or after a failure that it may have caused. Its last user closes it then.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Generic, Self, TypeVar

from kafka.future import Future

from ferry import clock
from ferry.clusters.net.connections import BOOTSTRAP_MILLISECONDS, ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop, Question
from ferry.config import ClientRole, Cluster
from ferry.errors import ClusterUnreachable, NotAuthorized, TooFewBrokers

T = TypeVar("T")
U = TypeVar("U")

# After this time without an answer the next question drops the connections: the other end, or a machine in between, may have closed them.
IDLE_SECONDS = 30.0
# A person waits for the first answer. A far cluster takes a connection within a second; a lost SYN is sent again after one and after three.
SILENT_SECONDS = 6.0
CONTACT_MILLISECONDS = 9_000


def lost(problem: Exception) -> bool:
    """Whether the client of a user that raised `problem` may be of no use any more: it has lost the cluster, or its login."""
    return isinstance(problem, ClusterUnreachable) and not isinstance(problem, NotAuthorized | TooFewBrokers)


class Connected:
    """An open connection to a cluster. Errors as of `ClusterConnection.open`."""

    def __init__(self, loop: EventLoop, cluster: Cluster, role: ClientRole, milliseconds: float, silent_seconds: float = math.inf) -> None:
        self.loop, self.connection = loop, ClusterConnection(loop, cluster, role)
        self._users, self._failed = 0, False
        self._started = list[Future]()
        try:
            loop.run(self.connection.open, milliseconds, silent_seconds)
        except BaseException:
            self.close()
            raise

    def start(self, ask: Question[object], *arguments: Any) -> Future:
        """Start `ask(connection, *arguments)`."""
        return self._start(ask, self.connection, *arguments)

    def run(self, coroutine: Question[T], *arguments: Any) -> T:
        """Run a question over the connection to its end; its result."""
        found: T = self.loop.result(self._start(coroutine, *arguments))
        return found

    def _start(self, coroutine: Question[object], *arguments: Any) -> Future:
        self._started = [future for future in self._started if not future.is_done]
        if not self._started and clock.monotonic() - self.connection.last_answer > IDLE_SECONDS:
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

    @property
    def failed(self) -> bool:
        """Whether it gets no further users."""
        return self._failed or self.loop.interrupted

    @contextmanager
    def used(self) -> Iterator[Self]:
        """Around one use."""
        self._users += 1
        try:
            yield self
        except BaseException as problem:
            is_clients_own = not isinstance(problem, Exception) or isinstance(problem, RequestNotSent | RequestLost) or lost(problem)
            self._failed = self._failed or is_clients_own
            raise
        finally:
            self._users -= 1
            self.close_if_failed()

    def close_if_failed(self) -> None:
        """Close it if it has failed and nobody uses it now."""
        if self.failed and not self._users:
            self.close()

    def close(self) -> None:
        self.connection.close()


class Asked(Generic[T]):
    """A question under way. Its answer arrives while the caller asks other questions, or waits for it."""

    def __init__(self, wait: Callable[[], T]) -> None:
        self._wait = wait

    def answer(self) -> T:
        """Wait for it; to be called once."""
        return self._wait()

    def then(self, use: Callable[[T], U]) -> "Asked[U]":
        """A question whose answer is what `use` makes of this one's."""
        return Asked(lambda: use(self._wait()))


class ConnectedCluster:
    """One cluster of a config, with its connections. It connects at the first question. Not for several threads."""

    def __init__(self, cluster: Cluster, loop: Callable[[], EventLoop]) -> None:
        """`loop`: the event loop of new connections."""
        self.cluster, self._loop = cluster, loop
        self._connections: dict[ClientRole, Connected] = {}
        self._same: dict[ClientRole, ClientRole] = {}  # of each role that was asked for, the first one with the same settings

    @property
    def alias(self) -> str:
        return self.cluster.alias

    def connected(
        self, role: ClientRole = ClientRole.ADMIN, milliseconds: float = BOOTSTRAP_MILLISECONDS, silent_seconds: float = math.inf
    ) -> AbstractContextManager[Connected]:
        """The connection that users share; roles with the same settings share one.

        `milliseconds`: after this time a cluster that has never answered is unreachable. `silent_seconds`: the same for one that takes no
        connection.
        """
        if role not in self._same:
            own = self.cluster.of_role(role)
            self._same[role] = next(other for other in ClientRole if self.cluster.of_role(other) == own)
        same = self._same[role]
        client = self._connections.get(same)
        if client is not None:
            client.close_if_failed()
        if client is None or client.failed:
            client = self._connections[same] = Connected(self._loop(), self.cluster, role, milliseconds, silent_seconds)
        return client.used()

    def first_contact(self) -> None:
        """Connect now, so that a command names a cluster that is away before it waits for anything else. Errors as of `connected`."""
        with self.connected(milliseconds=CONTACT_MILLISECONDS, silent_seconds=SILENT_SECONDS):
            pass

    def begin_asking(
        self, ask: Question[T], *arguments: Any, role: ClientRole = ClientRole.ADMIN, milliseconds: float = BOOTSTRAP_MILLISECONDS
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
        self, ask: Question[T], *arguments: Any, role: ClientRole = ClientRole.ADMIN, milliseconds: float = BOOTSTRAP_MILLISECONDS
    ) -> T:
        """The result of `ask(connection, *arguments)`. Raises what `connected` and `ask` raise."""
        with self.connected(role, milliseconds) as client:
            return client.run(ask, client.connection, *arguments)

    def close(self) -> None:
        for client in self._connections.values():
            with suppress(Exception):  # its work is done, so an error while it closes does not matter
                client.close()
