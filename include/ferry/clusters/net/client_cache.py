"""Clients that stay open between questions, so that a command connects to a cluster once and not for every question.

Within `kept_clients()` all users of a client share it, also at the same time, and the end of the scope closes it. Outside of such a scope a
client has one user, and is closed after its use. A client gets no further users after a signal, or after a failure that the client may have
caused. The scope belongs to the thread that opened it: other threads get clients of their own.

This module imports no client library: every command opens a scope, `ferry --help` too.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar, cast

from ferry.errors import ClusterUnreachable, NotAuthorized, TooFewBrokers


class Client(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Client)


class _Entry:
    """A client, and its number of `users` now. `failed`: the last user closes it. `details`: held, so that their ids stay in use."""

    def __init__(self, client: Client, details: tuple[object, ...]) -> None:
        self.client, self.details = client, details
        self.users, self.failed = 0, False


# By kind and the ids of details.
_kept: ContextVar[dict[tuple[Any, ...], _Entry] | None] = ContextVar("kept clients", default=None)


@contextmanager
def kept_clients() -> Iterator[None]:
    """Keep clients until the end. A scope within another one adds nothing."""
    if _kept.get() is not None:
        yield
        return
    kept: dict[tuple[Any, ...], _Entry] = {}
    token = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(token)
        for entry in reversed(kept.values()):  # a client that needs another one (its event loop) was made after it
            with suppress(Exception):  # its work is done, so an error while it closes does not matter
                entry.client.close()


@contextmanager
def clients_hidden() -> Iterator[None]:
    """Inside, every client is new and is closed after its use, as outside of any scope of `kept_clients`."""
    token = _kept.set(None)
    try:
        yield
    finally:
        _kept.reset(token)


def lost(problem: Exception) -> bool:
    """Whether the client of a user that raised `problem` may be of no use any more: it has lost the cluster, or its login."""
    return isinstance(problem, ClusterUnreachable) and not isinstance(problem, NotAuthorized | TooFewBrokers)


@contextmanager
def shared(kind: str, make: Callable[[], C], *details: object, failed: Callable[[Exception], bool] = lost) -> Iterator[C]:
    """The client of this kind and with these details (the same objects): the one that the scope keeps, or a new one.

    `failed`: says of an exception of a user whether the client gets no further users.
    """
    scope, key = _kept.get(), (kind, *map(id, details))
    kept = {} if scope is None else scope
    entry = kept.get(key)
    if entry is None:
        entry = kept[key] = _Entry(make(), details)
    entry.users += 1
    try:
        yield cast("C", entry.client)
    except BaseException as problem:
        entry.failed = entry.failed or not isinstance(problem, Exception) or failed(problem)
        if entry.failed and kept.get(key) is entry:
            del kept[key]
        raise
    finally:
        entry.users -= 1
        if not entry.users and (entry.failed or scope is None):
            entry.client.close()
