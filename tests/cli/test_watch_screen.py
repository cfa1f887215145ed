"""What `ferry watch` draws, and how it reads keys."""

from __future__ import annotations

import os
import pty
import sys
import termios
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from ferry.cli.watch import _single_keys
from ferry.cli.watch_screen import GRACE_SECONDS, screen
from ferry.monitoring.watching import FlowFrame, TopicLag

pytestmark = pytest.mark.unit

VALUES = 6


def drawn(entry: FlowFrame, now: float, width: int = 120) -> str:
    console = Console(width=width, record=True, file=StringIO())
    console.print(screen([entry], 10.0, now, width))
    return console.export_text()


@pytest.mark.parametrize(
    ("width", "shown"), [(60, "a" * 9 + "…" + "a" * 6 + "-12"), (80, "a" * 19 + "…" + "a" * 16 + "-12"), (320, "a" * 246 + "-12")]
)
def test_a_long_name_is_shortened_in_its_middle_and_stays_on_its_line(width: int, shown: str) -> None:
    lags = (TopicLag("a" * 246 + "-12", 1_234_567, 3600.0, 7200.0), TopicLag("orders", 1, 2.0, None))
    entry = FlowFrame("A->B", 1000.0, "behind", 900.0, topics=lags, lagging_topics=2)
    (line,) = [line for line in drawn(entry, 1000.0, width).splitlines() if "1,234,567" in line]
    assert line.split()[1:] == [shown, "1,234,567", "60", "min", "2", "h", "│"], line


def test_an_old_panel_tells_its_age() -> None:
    entry = FlowFrame("A->B", 1000.0, "up to date", 900.0)
    newest = 1000.0 + 2 * 10.0 + GRACE_SECONDS
    assert "ago" not in drawn(entry, newest)
    assert "A->B: up to date for 100 s, as it was 26 s ago" in drawn(entry, newest + 1.0)


@pytest.mark.parametrize(
    ("health", "told"), [("failing", "failing, up to date"), ("never_ran", "never ran, up to date"), ("healthy", "up to date")]
)
def test_the_title_of_a_panel_says_what_its_verdict_says(health: str, told: str) -> None:
    entry = FlowFrame("A->B", 1000.0, "up to date", 900.0, health=health, verdict="A->B is …", run={"run_id": "r", "state": "refused"})
    (panel,) = screen([entry], 10.0, 1000.0, 120).renderables[1:]  # type: ignore[union-attr]
    assert (panel.border_style == "green") is (health == "healthy")
    assert f"A->B: {told} for 100 s" in drawn(entry, 1000.0)
    assert "last run refused (r)" in drawn(entry, 1000.0)
    assert f"A->B: 1 group not synced, {entry.state} for" in drawn(replace(entry, health="lagging", word="1 group not synced"), 1000.0)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    master, slave = pty.openpty()
    with os.fdopen(slave) as file:
        monkeypatch.setattr(sys, "stdin", file)
        yield slave
    os.close(master)


def test_ctrl_z_does_not_stop_it(keyboard: int) -> None:
    before = termios.tcgetattr(keyboard)
    assert before[VALUES][termios.VSUSP] == b"\x1a"
    with _single_keys() as keys:
        assert keys == keyboard
        during = termios.tcgetattr(keyboard)
        assert during[VALUES][termios.VSUSP] == b"\x00"
        assert during[VALUES][termios.VINTR] == before[VALUES][termios.VINTR]
    assert termios.tcgetattr(keyboard) == before
