"""Watches flows: a thread for each flow reads its status again and again. So the screen never waits, and no flow waits for another one.

A look reads as much as a plan does; at most once a minute it also reads the ledger (for losses) and the newest run. If a cluster does not
answer, the look ends after the cluster's time-outs, and the next look tries again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from ferry.config import Flow
from ferry.errors import FerryError
from ferry.monitoring.status import flow_status, status_after_run
from ferry.monitoring.watching import FlowFrame, Look, frame

# Time between two reads of the ledger and the runs topic: reading a large ledger takes seconds.
WHOLE_SECONDS = 60.0


class FlowWatcher:
    """Watches one flow; `frame`: what is known now."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._whole_at = float("-inf")
        self._losses = 0
        self._run: Mapping[str, Any] | None = None
        self._earlier: Look | None = None
        self.frame: FlowFrame | None = None

    def look(self) -> FlowFrame:
        """Read both clusters once."""
        look = self._look()
        self.frame = frame(look, self.frame, self._earlier)
        if look.status is not None:
            self._earlier = look
        return self.frame

    def _look(self) -> Look:
        try:
            if time.monotonic() - self._whole_at >= WHOLE_SECONDS:
                status = flow_status(self._flow)
                self._losses, self._run = len(status.losses), self._newest_run()
                self._whole_at = time.monotonic()
            else:
                status = status_after_run(self._flow)
        except FerryError as problem:
            return Look(self._flow.name, time.time(), None, f"{type(problem).__name__}: {problem}", self._run, self._losses)
        return Look(self._flow.name, time.time(), status, "", self._run, self._losses)

    def _newest_run(self) -> Mapping[str, Any] | None:
        from ferry.monitoring.runs_reading import read_runs  # noqa: PLC0415 - not needed before the first look

        runs = read_runs(self._flow)["runs"]
        return runs[0] if runs else None


class Watcher:
    """Watches all flows, each every `interval` seconds; a context manager."""

    def __init__(self, flows: tuple[Flow, ...], interval: float) -> None:
        self._flows = [FlowWatcher(flow) for flow in flows]
        self._interval = interval
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(entry,), name=f"ferry-watch-{place}", daemon=True)
            for place, entry in enumerate(self._flows)
        ]
        self.problem: BaseException | None = None

    def __enter__(self) -> Watcher:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    @property
    def frames(self) -> tuple[FlowFrame, ...]:
        """What is known now of each flow that was read at least once."""
        return tuple(entry.frame for entry in self._flows if entry.frame is not None)

    def _run(self, entry: FlowWatcher) -> None:
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                entry.look()
                self._stop.wait(max(0.0, began + self._interval - time.monotonic()))
        except BaseException as problem:  # noqa: BLE001 - the caller raises it
            self.problem = problem
