"""A program in a real terminal (a pty): what it prints, keys that are pressed, and how it leaves the terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from tests.waiting import NEVER_SECONDS, until

# What moves the cursor, colours and clears.
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>78]|\][^\x07]*\x07)")
# In the child: the terminal becomes its own, so that Ctrl-C reaches it; signals that the tests ignore (nohup) work as in a new terminal;
# then the command takes its place.
TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """`command` as the foreground process of a terminal of 40 lines; a context manager that ends it."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None, columns: int = 180) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.before = self.settings(slave)
        self.slave = slave
        own = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}  # the size is the terminal's
        variables = {**own, "TERM": "xterm-256color", **(environment or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *map(str, command)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=variables,
            start_new_session=True,
        )
        self._raw = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        os.close(self.slave)
        os.close(self._master)

    @staticmethod
    def settings(descriptor: int) -> list[Any]:
        return termios.tcgetattr(descriptor)

    @property
    def raw(self) -> str:
        """Everything so far, as it was sent."""
        return self._raw.decode(errors="replace")

    @property
    def shown(self) -> str:
        """Everything so far, without what controls the screen."""
        return CONTROL.sub("", self.raw)

    @property
    def restored(self) -> bool:
        """Whether the line discipline is as it was, and the cursor is shown again."""
        return self.settings(self.slave) == self.before and self.raw.rfind("\x1b[?25h") >= self.raw.rfind("\x1b[?25l")

    def press(self, keys: str) -> None:
        """Once the program waits: Python's `input` does not notice a Ctrl-C that comes just before it begins to wait."""
        until(lambda: self.process.poll() is not None or psutil.Process(self.process.pid).status() == psutil.STATUS_SLEEPING)
        os.write(self._master, keys.encode())

    def read(self, seconds: float) -> None:
        """Take what comes within `seconds`."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and select.select([self._master], [], [], left)[0]:
            self._raw += os.read(self._master, 65536)

    def until(self, pattern: str, *, after: int = 0) -> int:
        """Wait for `pattern` behind place `after` of what was shown; where it ended."""
        end = time.monotonic() + NEVER_SECONDS
        while (found := re.compile(pattern).search(self.shown, after)) is None:
            ended = self.process.poll() is not None  # before the read: what it said last is read too
            self.read(0.05)
            over = time.monotonic() > end or (ended and not re.compile(pattern).search(self.shown, after))
            assert not over, f"never saw {pattern!r} in:\n{self.shown[after:]}"
        return found.end()

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        end = time.monotonic() + NEVER_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it goes on:\n{self.shown}"
            self.read(0.1)
        self.read(0.2)
        return self.process.returncode
