"""Clients are shared within a scope, and closed at its end, or when their last user has gone after one of them lost the cluster."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ferry.clusters.net.client_cache import kept_clients, lost, shared
from ferry.clusters.net.event_loop import EventLoop
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, NotAuthorized, TooFewBrokers

pytestmark = pytest.mark.unit

A: Any = object()
B: Any = object()


class Made:
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def used(cluster: Any = A, *details: object) -> Made:
    with shared("reader", Made, cluster, *details) as client:
        assert not client.closed
    return client


def test_a_client_is_lent_again_within_the_scope_and_closed_at_its_end() -> None:
    with kept_clients():
        first = used()
        with kept_clients():
            assert used() is first
        assert not first.closed, "only the outer scope ends it"
        assert used(B) is not first
        assert used(A, B) is not first
    assert first.closed


def test_without_a_scope_a_client_is_closed_at_once() -> None:
    assert used().closed
    with kept_clients():
        pass
    assert used().closed


def test_two_users_at_a_time_share_a_client() -> None:
    with kept_clients(), shared("reader", Made, A) as first, shared("reader", Made, A) as second:
        assert first is second


@pytest.mark.parametrize("problem", [ClusterUnreachable("away"), AuthenticationFailed("no login"), KeyboardInterrupt(), OSError("told")])
def test_a_client_that_may_be_of_no_use_any_more_is_closed(problem: BaseException) -> None:
    with kept_clients():
        with (
            pytest.raises(type(problem)),
            shared("reader", Made, A, failed=lambda found: isinstance(found, OSError) or lost(found)) as failed,
        ):
            raise problem
        assert failed.closed
        assert used() is not failed


@pytest.mark.parametrize("problem", [NotAuthorized("grant"), TooFewBrokers("two"), ConfigError("a key"), OSError("a file")])
def test_another_failure_of_its_user_does_not_close_a_client(problem: Exception) -> None:
    with kept_clients():
        with pytest.raises(type(problem)), shared("reader", Made, A) as client:
            raise problem
        assert used() is client
    assert client.closed


def test_a_client_that_failed_stays_open_for_its_other_users() -> None:
    with kept_clients(), shared("reader", Made, A) as first:
        with pytest.raises(ClusterUnreachable), shared("reader", Made, A) as failed:
            raise ClusterUnreachable("away")
        assert failed is first
        assert not first.closed
        assert used() is not first
    assert first.closed


def test_clients_are_closed_before_those_that_they_need() -> None:
    closed: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)

    def connection() -> Named:
        with shared("loop", lambda: Named("loop")):
            return Named("connection")

    with kept_clients(), shared("connection", connection):
        pass
    assert closed == ["connection", "loop"]


def test_another_thread_has_clients_of_its_own() -> None:
    found: list[Made] = []
    with kept_clients():
        first = used()
        thread = threading.Thread(target=lambda: found.append(used()))
        thread.start()
        thread.join()
    assert found[0] is not first
    assert first.closed


def test_what_an_event_loop_runs_has_no_kept_clients() -> None:
    """A message handler or a listener may ask a cluster itself: the loop that it runs in cannot run a second time."""

    async def handler() -> Made:
        return used()

    with kept_clients():
        kept = used()
        loop = EventLoop()
        inside = loop.run(handler)
        loop.close()
        assert inside is not kept
        assert inside.closed
        assert used() is kept
