"""A step that takes long is named, again and again; one that is quick is not."""

from __future__ import annotations

import threading

import pytest

from ferry.copying import slow_steps
from ferry.copying.slow_steps import named_when_slow

pytestmark = pytest.mark.unit


def test_a_slow_step_is_named_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_steps, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(slow_steps, "REPEAT_SECONDS", 0.001)
    said: list[str] = []
    twice = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        if len(said) > 1:
            twice.set()

    with named_when_slow(say, "planning the lanes"):
        assert twice.wait(30)
    over = len(said)
    assert set(said) == {"still planning the lanes (0 s)"}
    assert "ferry-slow-step" not in [thread.name for thread in threading.enumerate()]
    assert len(said) == over


def test_a_quick_step_is_not_named_and_its_error_passes() -> None:
    said: list[str] = []
    with pytest.raises(KeyError), named_when_slow(said.append, "planning the lanes"):
        raise KeyError
    assert said == []
