"""Clients that stay open between questions, so that a command connects to a cluster once and not for every question.

Within `kept_clients()` a client that its user gives back is lent to the next user who asks for the same one; the end of the scope closes
it. Outside of such a scope a client is closed as soon as it is given back. A client has one user at a time. The scope belongs to the
thread that opened it: other threads get clients of their own. A client whose user failed is closed, and so is one that was idle for
IDLE_SECONDS, because the other end may have closed its connections meanwhile.

This module imports no client library: every command opens a scope, `ferry --help` too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from ferry.config import Cluster

# A broker that restarts is back after about as long: an older connection is more likely to be dead than worth keeping.
IDLE_SECONDS = 30.0


class Client(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Client)


class _Idle(NamedTuple):
    cluster: Cluster  # held, so that its id stays its own
    client: Client
    since: float


# By kind, cluster and details.
_shelf: ContextVar[dict[tuple[Any, ...], list[_Idle]] | None] = ContextVar("kept clients", default=None)


@contextmanager
def kept_clients() -> Iterator[None]:
    """Keep clients until the end. A scope within another one adds nothing."""
    if _shelf.get() is not None:
        yield
        return
    shelf: dict[tuple[Any, ...], list[_Idle]] = {}
    token = _shelf.set(shelf)
    try:
        yield
    finally:
        _shelf.reset(token)
        for entry in chain.from_iterable(shelf.values()):
            with suppress(Exception):  # whatever a client meets while it closes, what was asked of it is done
                entry.client.close()


@contextmanager
def lent(kind: str, cluster: Cluster, make: Callable[[], C], *details: object) -> Iterator[C]:
    """A client of this kind and with these details for `cluster`: one that is idle, or a new one."""
    shelf = _shelf.get()
    idle = None if shelf is None else shelf.setdefault((kind, id(cluster), *details), [])
    client: C = _taken(idle or []) or make()
    try:
        yield client
    except BaseException:
        client.close()
        raise
    if idle is None:
        client.close()
    else:
        idle.append(_Idle(cluster, client, time.monotonic()))


def _taken(idle: list[_Idle]) -> Any:
    """The last client that is not too old; closes those that are."""
    while idle:
        entry = idle.pop()
        if time.monotonic() - entry.since < IDLE_SECONDS:
            return entry.client
        entry.client.close()
    return None
