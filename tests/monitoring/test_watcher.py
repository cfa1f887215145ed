"""Flows that are looked at again and again."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.monitoring import watcher
from ferry.monitoring.status import FlowStatus
from ferry.monitoring.watcher import Watcher

pytestmark = pytest.mark.unit


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Ends the looks at the flow `dead`."""
    ended = threading.Event()

    def status(flow: Any) -> FlowStatus:
        if flow.name == "broken":
            raise RuntimeError("a defect")
        if flow.name == "dead":
            ended.wait(30.0)
        return FlowStatus(flow.name, (), ())

    monkeypatch.setattr(watcher, "flow_status", status)
    monkeypatch.setattr(watcher, "status_after_run", status)
    monkeypatch.setattr(watcher.FlowWatcher, "_newest_run", lambda _: None)
    return ended


def flows(*names: str) -> Any:
    return tuple(SimpleNamespace(name=name) for name in names)


def until(condition: Any) -> None:
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_flow_does_not_wait_for_another(hung: threading.Event) -> None:
    with Watcher(flows("dead", "live"), 0.01) as watched:
        until(lambda: watched.frames)
        (first,) = watched.frames
        assert first.flow == "live"
        until(lambda: watched.frames[0].at > first.at)
        hung.set()
        until(lambda: [entry.flow for entry in watched.frames] == ["dead", "live"])
    until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("ferry-watch")])


def test_an_unexpected_error_of_a_look_reaches_the_caller(hung: threading.Event) -> None:
    with Watcher(flows("live", "broken"), 0.01) as watched:
        until(lambda: watched.problem)
    assert str(watched.problem) == "a defect"
    hung.set()
