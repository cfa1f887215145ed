"""`make hours MINUTES=60`: a piece of an endurance run; called again, it goes on where the last piece ended.

Runs of a flow, one after the other, while a page of it is open. After each run a sample: how much memory, open files and threads the
processes took, and what Ferry's own topics take on the target's disk. At the end of the piece a line through each figure of all pieces so
far. Exit code 1 if something grows, if a run fails, or if `ferry verify` finds a difference.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.drills.hours.slopes import Line, Sample, decoded, encoded, lines
from tests.drills.hours.watched import Watched
from tests.drills.hours.world import FLOW, TOPIC, World, Writer, world

from ferry.sandbox.ports import free_ports

STORE = Path(".ferry") / "hours"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "hours.md"
MASTERS = ("inline", "local[2]")
PAUSE_SECONDS = 1.0
# Of a run; one that takes longer hangs.
RUN_SECONDS = 420.0
VIEWS = ("overview?", "runs?", "topics?", "history?", f"coverage?topic={TOPIC}&", "groups?", "drift?", "losses?")
MARK = " **grows**"
VIEW_SECONDS = 30.0
LOOK_SECONDS = 5.0
ON_PAGE = tuple(f"page {what}" for what in ("MiB", "files", "threads"))


class Failed(RuntimeError):
    """A command that did not end with 0."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drills.hours.run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--store", type=Path, default=STORE, help="the clusters and the samples of all pieces (default %(default)s)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    store = options.store.resolve()
    store.mkdir(parents=True, exist_ok=True)
    file = store / "samples.jsonl"
    before = decoded(file.read_text().splitlines()) if file.exists() else []
    piece, hours = (before[-1].piece + 1, before[-1].hours) if before else (1, 0.0)
    with world(store) as made:
        if not before:
            _ferry(made, "run", "--master", "inline")
            made.age()
        writer = Writer(made)
        writer.start()
        with page(made, store) as watched, file.open("a") as samples:
            for sample in _samples(made, watched, piece, hours, options.minutes):
                samples.write(encoded(sample) + "\n")
                samples.flush()
        writer.finish()
        _ferry(made, "run", "--master", "inline")
        _ferry(made, "verify")
    found = lines(decoded(file.read_text().splitlines()), ON_PAGE)
    text = document(found, decoded(file.read_text().splitlines()))
    PAGE.write_text(text, encoding="utf-8")
    print(text)  # noqa: T201 - the report
    return 1 if any(line.grows for line in found) else 0


def document(found: list[Line], samples: list[Sample]) -> str:
    """The page of Markdown."""
    pieces, runs = len({sample.piece for sample in samples}), len(samples)
    grown = [line.name for line in found if line.grows]
    rows = [
        f"| {line.name} | {line.least:,.1f} | {line.median:,.1f} | {line.most:,.1f} | {line.growth:+,.2f}{MARK * line.grows} |"
        for line in found
    ]
    return "\n".join(
        (
            "# Many hours",
            "",
            f"`make hours`, {datetime.now(UTC):%Y-%m-%d}: {runs} runs in {samples[-1].hours:.1f} hours, in {pieces} pieces.",
            "",
            f"**{'These figures grow: ' + ', '.join(grown) if grown else 'No figure grows.'}**",
            "",
            "| figure, of the largest process of its kind | least | median | most | growth over all hours |",
            "|---|---|---|---|---|",
            *rows,
            "",
        )
    )


def _samples(made: World, watched: Watched, piece: int, hours: float, minutes: float) -> Iterator[Sample]:
    began = time.monotonic()
    number = 0
    while time.monotonic() - began < minutes * 60:
        master = MASTERS[number % len(MASTERS)]
        figures = _ferry(made, "run", "--master", master)
        watched.forget()
        watched.look()
        number += 1
        figures = {f"{name} ({master})": value for name, value in figures.items()} | watched.figures | made.disk()
        yield Sample(piece, hours + (time.monotonic() - began) / 3600, figures)
        time.sleep(PAUSE_SECONDS)


def _ferry(made: World, command: str, *options: str) -> dict[str, float]:
    """What its processes took. Failed."""
    whole = [sys.executable, "-m", "tests.drills.hours.aged_ferry", command, str(made.config), "--flow", FLOW, *options]
    log = made.config.with_name(f"{command}.log")
    with log.open("wb") as output, subprocess.Popen(whole, stdout=output, stderr=output) as process, Watched(process.pid) as watched:
        try:
            code = process.wait(RUN_SECONDS)
        except BaseException:
            process.terminate()
            raise
    if code:
        raise Failed(f"ferry {command} ended with {code}: see {log}")
    return dict(watched.figures)


@contextmanager
def page(made: World, store: Path) -> Iterator[Watched]:
    """The page in a process of its own, and somebody who looks at all its views."""
    (port,) = free_ports(1)
    over, seen = threading.Event(), set[str]()
    environment = {**os.environ, "FERRY_CONFIG": str(made.config), "AIRFLOW_HOME": str(store / "airflow")}
    command = [sys.executable, "-m", "tests.page.open_server", str(port)]
    with (store / "page.log").open("ab") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environment) as server:
        reader = threading.Thread(target=_look_on, args=(port, over, seen), name="page reader", daemon=True)
        reader.start()
        try:
            yield Watched(server.pid, "page")
        finally:
            over.set()
            reader.join()
            server.terminate()
    if missed := set(VIEWS) - seen:
        raise Failed(f"the page never answered {', '.join(sorted(missed))}: see {store / 'page.log'}")


def _look_on(port: int, over: threading.Event, seen: set[str]) -> None:
    while not over.wait(LOOK_SECONDS):
        for view in VIEWS:
            url = f"http://127.0.0.1:{port}/ferry/api/{view}{urllib.parse.urlencode({'flow': FLOW})}"
            try:
                urllib.request.urlopen(url, timeout=VIEW_SECONDS).read()
                seen.add(view)
            except (urllib.error.URLError, TimeoutError):
                break  # it starts, or its first read goes on


if __name__ == "__main__":
    sys.exit(main())
