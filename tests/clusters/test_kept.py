"""Clients are lent again within a scope, and closed at its end, when their user failed, and when they were idle for long."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ferry.clusters import kept
from ferry.clusters.kept import IDLE_SECONDS, kept_clients, lent

pytestmark = pytest.mark.unit

A: Any = object()
B: Any = object()


class Made:
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def used(cluster: Any = A, *details: object) -> Made:
    with lent("reader", cluster, Made, *details) as client:
        assert not client.closed
    return client


def test_a_client_is_lent_again_within_the_scope_and_closed_at_its_end() -> None:
    with kept_clients():
        first = used()
        with kept_clients():
            assert used() is first
        assert not first.closed, "only the outer scope ends it"
        assert used(B) is not first
        assert used(A, "other details") is not first
    assert first.closed


def test_without_a_scope_a_client_is_closed_at_once() -> None:
    assert used().closed
    with kept_clients():
        pass
    assert used().closed


def test_two_users_at_a_time_have_two_clients() -> None:
    with kept_clients(), lent("reader", A, Made) as first, lent("reader", A, Made) as second:
        assert first is not second


def test_a_client_whose_user_failed_is_closed() -> None:
    with kept_clients():
        with pytest.raises(ValueError, match="failed"), lent("reader", A, Made) as failed:
            raise ValueError("failed")
        assert failed.closed
        assert used() is not failed


def test_a_client_that_was_idle_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(kept.time, "monotonic", lambda: now)
    with kept_clients():
        old = used()
        now += IDLE_SECONDS
        assert used() is not old
        assert old.closed


def test_another_thread_has_clients_of_its_own() -> None:
    found: list[Made] = []
    with kept_clients():
        first = used()
        thread = threading.Thread(target=lambda: found.append(used()))
        thread.start()
        thread.join()
    assert found[0] is not first
    assert first.closed
