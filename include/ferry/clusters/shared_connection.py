"""The connection that all questions of a command to one cluster share, and the event loop that the connections share (see kept.py)."""

import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from ferry.clusters.connections import BOOTSTRAP_MILLISECONDS, ClusterConnection
from ferry.clusters.event_loop import EventLoop
from ferry.clusters.kept import shared
from ferry.config import ClientRole, Cluster

T = TypeVar("T")

# After this time without a question the connections are dropped: the other end, or something in between, may have closed them meanwhile.
IDLE_SECONDS = 30.0


class Connected:
    """An open connection to a cluster. Errors as of `ClusterConnection.open`."""

    def __init__(self, loop: EventLoop, cluster: Cluster, role: ClientRole, milliseconds: float) -> None:
        self.loop, self.connection, self._used = loop, ClusterConnection(loop, cluster, role), time.monotonic()
        try:
            loop.run(self.connection.open, milliseconds)
        except BaseException:
            self.close()
            raise

    def run(self, ask: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """The result of `ask(connection, *arguments)`."""
        if time.monotonic() - self._used > IDLE_SECONDS:
            self.connection.disconnect()  # the other end may have done so already
        try:
            return self.loop.run(ask, self.connection, *arguments)
        finally:
            self._used = time.monotonic()

    @property
    def round_trip(self) -> float:
        """Seconds of the shortest round trip that the kernel has seen on its connections; 0: not known."""
        return self.connection.round_trip()

    def close(self) -> None:
        self.connection.close()


@contextmanager
def connected(cluster: Cluster, role: ClientRole = ClientRole.ADMIN, milliseconds: float = BOOTSTRAP_MILLISECONDS) -> Iterator[Connected]:
    """The connection that users in a scope of `kept_clients` share; roles with the same settings share one. All have one event loop.

    `milliseconds`: after this time a cluster that has never answered is unreachable.
    """
    same = next(other for other in ClientRole if cluster.of_role(other) == cluster.of_role(role))
    with _shared_loop() as loop, shared("connection", lambda: Connected(loop, cluster, role, milliseconds), cluster, same, loop) as client:
        yield client


@contextmanager
def _shared_loop() -> Iterator[EventLoop]:
    """Stays as good as before if a user failed, unless a signal ended the user in the middle."""
    with ExitStack() as scope:
        loop = scope.enter_context(shared("loop", EventLoop))
        try:
            yield loop
        except Exception:
            scope.pop_all().close()
            raise


def ask_cluster(
    cluster: Cluster,
    ask: Callable[..., Coroutine[Any, Any, T]],
    *arguments: Any,
    role: ClientRole = ClientRole.ADMIN,
    milliseconds: float = BOOTSTRAP_MILLISECONDS,
) -> T:
    """The result of `ask(connection, *arguments)` over the shared connection. Raises what `connected` and `ask` raise."""
    with connected(cluster, role, milliseconds) as client:
        return client.run(ask, *arguments)
