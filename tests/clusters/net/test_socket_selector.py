"""The selector that keeps watching a socket between two waits: no event is lost, and none wakes the loop for nothing twice."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator

import pytest

from ferry.clusters.net.event_loop import SocketSelector

pytestmark = pytest.mark.unit

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@pytest.fixture
def selector() -> Iterator[SocketSelector]:
    with SocketSelector() as found:
        yield found


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_data_between_two_waits_is_seen_by_the_second(selector: SocketSelector, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    selector.register(near, READ, "first")
    selector.unregister(near)
    far.send(b"x")
    selector.register(near, READ, "second")
    assert [(key.data, events) for key, events in selector.select(1)] == [("second", READ)]


def test_data_without_a_waiter_is_not_reported_and_seen_later(selector: SocketSelector, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    selector.register(near, READ, "first")
    selector.unregister(near)
    far.send(b"x")
    assert selector.select(0) == []
    assert near not in [key.fileobj for key in selector.get_map().values()]  # let go of: it would wake every select from now on
    selector.register(near, READ, "second")
    assert [key.data for key, _ in selector.select(1)] == ["second"]


def test_waits_for_reading_and_writing_take_turns(selector: SocketSelector, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    for _ in range(3):
        selector.register(near, READ, "read")
        assert selector.select(0) == []
        selector.unregister(near)
        selector.register(near, WRITE, "write")
        assert [(key.data, events) for key, events in selector.select(0)] == [("write", WRITE)]
        selector.modify(near, READ | WRITE, "both")
        far.send(b"x")
        assert [(key.data, events) for key, events in selector.select(1)] == [("both", READ | WRITE)]
        near.recv(1)
        selector.unregister(near)


def test_a_new_socket_may_have_the_number_of_a_closed_one(selector: SocketSelector) -> None:
    old, peer = socket.socketpair()
    number = old.fileno()
    selector.register(old, READ, "old")
    selector.unregister(old)
    old.close()
    peer.close()
    near, far = socket.socketpair()
    with near, far:
        assert number in {near.fileno(), far.fileno()}
        mine, other = (near, far) if near.fileno() == number else (far, near)
        selector.register(mine, READ, "new")
        other.send(b"x")
        assert [key.data for key, _ in selector.select(1)] == ["new"]


def test_an_unknown_socket_is_a_key_error(selector: SocketSelector, pair: tuple[socket.socket, socket.socket]) -> None:
    for ask in (selector.get_key, selector.unregister):
        with pytest.raises(KeyError):
            ask(pair[0])


def test_open_sockets_are_closed_with_the_selector() -> None:
    one, other = socket.socketpair()
    selector = SocketSelector()
    selector.register(one, selectors.EVENT_WRITE)
    selector.unregister(one)
    selector.close()
    assert one.fileno() == -1
    assert other.recv(1) == b""
    other.close()
