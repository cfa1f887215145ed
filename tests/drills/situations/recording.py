"""`make pictures`: a recording of a run that is killed and of the proof that nothing is missing, on two clusters of its own.

Bash runs in a terminal and is typed into. What the terminal shows, with its times, becomes an asciicast, which termtosvg draws.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.airflow_services import ROOT
from tests.cli.terminal import Terminal
from tests.waiting import until

RECORDING = ROOT / "docs" / "images" / "killed.svg"
TERMTOSVG = ("uv", "tool", "run", "--from", "termtosvg==1.1.0", "termtosvg")
FERRY = ROOT / ".venv" / "bin" / "ferry"
COLUMNS, LINES = 100, 30
RECORDS = 200_000
KEY_SECONDS = 0.04
# Nothing that the terminal shows stands longer, so that nobody has to wait for a command.
MOST_MS, END_MS = 1_500, 6_000
PROMPT = "$ "
WAITS = r"[\r\n]\$ \Z"
# What is typed, and what must be shown then: the prompt, or a text.
SCENES: tuple[tuple[str, str], ...] = (
    ("# Copy two million records, and kill the run in the middle of its transactions.", WAITS),
    ("ferry run mm2.properties --flow 'A->B' --master inline &", r"of [\d,]+ records \(\d+%\)"),
    ("kill -9 %1", WAITS),
    ("# Where is the flow now?", WAITS),
    ("ferry status mm2.properties | head -1", WAITS),
    ("# Run it again: the new run fences the killed one, and continues after its last commit.", WAITS),
    ("ferry run mm2.properties --flow 'A->B' --master inline 2>/dev/null | tail -1", WAITS),
    ("# Is every record there, once and in order? Ferry compares both clusters record by record.", WAITS),
    ("ferry verify mm2.properties --flow 'A->B' 2>&1 | tail -2", WAITS),
)


class Cast:
    """What a terminal shows, by time."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal, self._begun, self._taken = terminal, time.monotonic(), len(terminal.raw)
        self.events: list[tuple[float, str, str]] = []

    def watch(self, seconds: float) -> None:
        self._terminal.read(seconds)
        if new := self._terminal.raw[self._taken :]:
            self.events.append((time.monotonic() - self._begun, "o", new))
            self._taken += len(new)

    def until(self, pattern: str, after: int) -> None:
        """Until the terminal has shown it behind this place."""
        until(lambda: self.watch(KEY_SECONDS) or re.search(pattern, self._terminal.shown[after:]), lambda: f"never saw {pattern}")

    def type(self, text: str) -> None:
        for key in f"{text}\n":
            self._terminal.press(key)
            self.watch(KEY_SECONDS)

    def text(self) -> str:
        head = {"version": 2, "width": COLUMNS, "height": LINES}
        return "".join(f"{json.dumps(line)}\n" for line in (head, *self.events))


@contextmanager
def sandbox(directory: Path) -> Iterator[None]:
    def ferry(*arguments: str) -> None:
        subprocess.run([FERRY, "sandbox", *arguments, "--directory", directory], check=True, capture_output=True)

    ferry("up")
    try:
        ferry("fill", "--records", str(RECORDS))
        yield
    finally:
        ferry("down")


def record(directory: Path) -> str:
    own = {"PS1": PROMPT, "PATH": f"{FERRY.parent}:/usr/bin:/bin", "HOME": str(directory), "COLUMNS": str(COLUMNS)}
    with Terminal(["bash", "--norc", "--noprofile", "-i"], own, columns=COLUMNS) as terminal:
        terminal.press(f"cd {directory}; stty rows {LINES}; clear\n")
        terminal.read(1.0)
        cast = Cast(terminal)
        for text, shown in SCENES:
            place = len(terminal.shown)
            cast.type(text)
            cast.until(shown, place)
            cast.watch(1.0)
    return cast.text()


def take() -> None:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        with sandbox(directory):
            (directory / "killed.cast").write_text(record(directory))
        times = ["-M", str(MOST_MS), "-D", str(END_MS)]
        subprocess.run([*TERMTOSVG, "render", directory / "killed.cast", RECORDING, *times], check=True)


if __name__ == "__main__":
    take()
