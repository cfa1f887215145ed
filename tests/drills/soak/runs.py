"""`ferry run` on a schedule, as real processes: one after the other, now and then two at once, as a second scheduler would.

Runs that follow take over from each other: the next one starts while the last one copies.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.drills.faults.processes import send, tree_of
from tests.drills.soak.report import Log
from tests.drills.soak.stage import FLOW

PAUSE_SECONDS = (0.5, 4.0)
TWICE = 0.2
# How long a run follows, and when the next one starts: mostly before that.
FOLLOW_SECONDS = 60
HAND_OVER_SECONDS = (5.0, 70.0)
# A run that neither ends nor makes headway is a finding.
RUN_SECONDS = 420.0
# A run may meet what was broken shortly before it began.
AFTERMATH_SECONDS = 20.0
DONE, OTHER, UNREACHABLE, PARTLY_FAILED, SUPERSEDED = 0, 1, 3, 5, 6
TAIL_LINES = 12
FERRY = str(Path(sys.executable).parent / "ferry")


@dataclass
class Run:
    """One process tree. `struck`: something was done to it; `at_work`: its lanes are; `abandoned`: the schedule goes on without it."""

    process: subprocess.Popen[str]
    began: float = field(default_factory=time.monotonic)
    struck: str = ""
    at_work: threading.Event = field(default_factory=threading.Event)
    abandoned: threading.Event = field(default_factory=threading.Event)
    said: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))

    @property
    def lives(self) -> bool:
        """Whether its command has not ended."""
        return self.process.poll() is None


def start_run(config: Path, *options: str) -> Run:
    """A run whose output is drained."""
    command = [FERRY, "run", str(config), "--flow", FLOW, *options]
    run = Run(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True))

    def drain() -> None:
        with run.process.stdout or contextlib.nullcontext(()) as lines:
            for line in lines:
                run.said.append(line.rstrip())
                if " to go" in line:
                    run.at_work.set()

    threading.Thread(target=drain, daemon=True).start()
    return run


class Schedule(threading.Thread):
    """Starts runs until told to stop, and judges how each ended."""

    def __init__(self, config: Path, log: Log, seed: int, *, follow: bool) -> None:
        super().__init__(name="schedule", daemon=True)
        self._config, self._log, self._follow = config, log, follow
        self._followers: list[threading.Thread] = []
        self._chance = random.Random(seed)
        self._stopped = threading.Event()
        self._disturbed: deque[float] = deque(maxlen=1)
        self.running: list[Run] = []

    def run(self) -> None:
        """One after the other."""
        while not self._stopped.wait(self._chance.uniform(*PAUSE_SECONDS)):
            runs = [self._start()]
            if self._chance.random() < TWICE:
                self._stopped.wait(self._chance.uniform(0.0, 12.0))
                runs.append(self._start())
                self._log.event("two runs at once", "a second scheduler starts the flow too")
            for run in runs:
                if self._follow:
                    ending = partial(self._end, run, overlapped=len(runs) > 1)
                    self._followers.append(threading.Thread(target=ending, daemon=True))
                    self._followers[-1].start()
                else:
                    self._end(run, overlapped=len(runs) > 1)
            if self._follow:
                self._stopped.wait(self._chance.uniform(*HAND_OVER_SECONDS))

    def finish(self) -> None:
        """Let what runs end."""
        self._stopped.set()
        self.join()
        for follower in self._followers:
            follower.join()

    def disturbed(self) -> None:
        """Something was broken that any run may meet."""
        self._disturbed.append(time.monotonic())

    def at_work(self, seconds: float) -> Run | None:
        """A run whose lanes are at work; None when there is none within so many seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for run in list(self.running):
                if run.lives and run.at_work.is_set() and not run.struck:
                    return run
            time.sleep(0.02)
        return None

    def replace(self, run: Run) -> None:
        """Do not wait for this run any more: it sleeps."""
        run.abandoned.set()

    def _start(self) -> Run:
        master = self._chance.choice(["local[2]", "local[2]", "local[2]", "inline"])
        run = start_run(self._config, "--master", master, *(("--follow", f"{FOLLOW_SECONDS}s") if self._follow else ()))
        self.running.append(run)
        return run

    def _end(self, run: Run, *, overlapped: bool) -> None:
        code = self._ended(run)
        if code is None:
            threading.Thread(target=self._end_abandoned, args=(run,), daemon=True).start()
            return
        self.running.remove(run)
        self._judge(run, code, overlapped=overlapped)

    def _ended(self, run: Run) -> int | None:
        """Its exit code; None once it is abandoned."""
        while run.lives:
            if run.abandoned.is_set():
                return None
            if time.monotonic() > run.began + RUN_SECONDS:
                self._log.problem(f"a run did not end within {RUN_SECONDS:.0f} s: {' | '.join(run.said)}")
                send(tree_of(run.process.pid), signal.SIGKILL)
                return run.process.wait()
            time.sleep(0.05)
        return run.process.wait()

    def _end_abandoned(self, run: Run) -> None:
        """It wakes up beside a newer run, and ends."""
        self._judge(run, run.process.wait(), overlapped=True)
        self.running.remove(run)

    def _judge(self, run: Run, code: int, *, overlapped: bool) -> None:
        broken = bool(self._disturbed) and self._disturbed[-1] > run.began - AFTERMATH_SECONDS
        kind = "struck" if run.struck else "two at once" if overlapped else "something was broken" if broken else "undisturbed"
        self._log.exits[kind][code] += 1
        self._log.say(f"run ended after {time.monotonic() - run.began:.0f} s with {code} ({run.struck or kind})")
        if not allowed(code, struck=bool(run.struck), overlapped=overlapped, broken=broken):
            self._log.problem(f"run ({kind}) ended with {code}: {' | '.join(run.said)}")


def allowed(code: int, *, struck: bool, overlapped: bool, broken: bool) -> bool:
    """Whether a run may end so: signals only if it was struck; refusals and superseded runs only where there is a cause for them."""
    fine = {DONE}
    if overlapped or struck:
        fine.add(SUPERSEDED)
    if broken or struck:
        fine |= {PARTLY_FAILED, UNREACHABLE}
    return code in fine or (struck and code in {-signal.SIGKILL, 128 + signal.SIGKILL, OTHER})
