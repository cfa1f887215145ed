"""Ferry as its users run it: one `ferry run` process after the other, until told to stop; what becomes of each is counted."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
from tests.drills.faults.processes import command_of, lives, send, tree_of

# A run that neither ends nor makes headway is a finding. Counted from its start: what a test does to it may begin late, and the patience
# of 75 s, and what a loaded machine adds to it, only then.
RUN_SECONDS = 600.0
# Spark's start on a loaded machine.
START_SECONDS = 120.0
# After a SIGTERM: lanes abort what is open, then everything ends.
END_SECONDS = 60.0
# Between two runs, as a scheduler would leave.
PAUSE_SECONDS = 0.5
LAST_LINES = 20
TOLD_LINES = 3
# Signals aside.
_FAILED = range(1, 100)


class Copier(threading.Thread):
    """Runs the flow of `config` again and again. `exits`: how often each exit code came (negative: ended by that signal). `told`: the last
    lines of runs that failed by themselves."""

    def __init__(self, config: Path, flow: str, master: str) -> None:
        super().__init__(name="copier", daemon=True)
        self.command = [str(Path(sys.executable).parent / "ferry"), "run", str(config), "--flow", flow, "--master", master]
        self._stop_asked = threading.Event()
        self._at_work = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self.exits: Counter[int] = Counter()
        self.said: list[str] = []
        self.told: list[str] = []
        self.problem = ""

    def run(self) -> None:
        """One run after the other."""
        while not self._stop_asked.is_set() and not self.problem:
            self._once()
            self._stop_asked.wait(PAUSE_SECONDS)

    def wait_until_at_work(self) -> None:
        """Return when a run has planned its lanes."""
        if not self._at_work.wait(START_SECONDS):
            raise TimeoutError("no run was at work: " + "\n".join(self.said[-LAST_LINES:]))

    def bounce(self, number: signal.Signals, seconds: float) -> int:
        """Wait until lanes are at work, `seconds` more, then signal: SIGKILL to the whole tree, any other to `ferry` itself.

        Returns how many processes got it; whoever is in the way of the next run is killed once the run should have ended.
        """
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if not self._at_work.wait(deadline - time.monotonic()):
                break
            time.sleep(seconds)
            process = self._process
            if process is None or process.poll() is not None or not self._at_work.is_set():
                continue
            tree = tree_of(process.pid)
            struck = tree if number is signal.SIGKILL else tree[:1]
            send(struck, number)
            left = _left(tree, time.monotonic() + END_SECONDS)
            if number is not signal.SIGKILL and left:
                named = "; ".join(command_of(member)[:200] for member in left)
                self.problem = f"{number.name} to ferry run, and {END_SECONDS:.0f} s later there still are: {named}"
            send(left, signal.SIGKILL)
            return len(struck)
        raise TimeoutError("no run was at work: " + "\n".join(self.said[-LAST_LINES:]))

    def finish(self, *, kill: bool = False) -> None:
        """Start no more runs; let the present one end, or kill it."""
        self._stop_asked.set()
        if kill and self._process is not None:
            send(tree_of(self._process.pid), signal.SIGKILL)
        self.join(RUN_SECONDS + END_SECONDS)
        assert not self.is_alive()

    def _once(self) -> None:
        process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
        )
        self._process = process
        before = len(self.said)
        watchdog = threading.Timer(RUN_SECONDS, self._give_up, [process])
        watchdog.start()
        try:
            with process.stderr or contextlib.nullcontext(()) as lines:
                for line in lines:
                    self.said.append(line.rstrip())
                    if " to go" in line:
                        self._at_work.set()
            code = process.wait()
            self.exits[code] += 1
            if code in _FAILED:
                self.told.append(f"exit {code}: " + " / ".join(self.said[before:][-TOLD_LINES:]))
        finally:
            self._at_work.clear()
            watchdog.cancel()

    def _give_up(self, process: subprocess.Popen[str]) -> None:
        self.problem = f"a run did not end within {RUN_SECONDS:.0f} s: " + "\n".join(self.said[-LAST_LINES:])
        send(tree_of(process.pid), signal.SIGKILL)


def _left(tree: list[psutil.Process], deadline: float) -> list[psutil.Process]:
    """Who of them still lives then."""
    while (left := [member for member in tree if lives(member)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
