"""A run in a process of its own, and one of its requests that a proxy holds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.copying.plain.conftest import Target
from tests.waiting import until
from tools.proxy.rules import PRODUCE, Action, Rule

from ferry.config import Flow

OFFSET_COMMIT = 8
# Until the next run is at work, and shorter than its patience. What is held does not depend on it.
HELD_SECONDS = 4.0


class Moment(NamedTuple):
    """Which request is held. `most`: how many of them a run of this test sends at least."""

    api: int
    containing: bytes
    most: int


MOMENTS = {
    "records": Moment(PRODUCE, b" xxxxx", 6),
    "receipts": Moment(PRODUCE, b'"kind":"copied"', 4),
    "heads": Moment(PRODUCE, b'{"head"', 4),
    "positions": Moment(OFFSET_COMMIT, b"__ferry-", 4),
    "names": Moment(PRODUCE, b'{"writer"', 8),
}


@contextmanager
def running(path: Path, flow: Flow, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`ferry run` in a process of its own, which is killed at the end."""
    command = [str(Path(sys.executable).parent / "ferry"), "run", str(path), "--flow", flow.name, "--master", "inline", *more]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def held_at(moment: Moment, held: Action, skip: int, target: Target) -> Iterator[Rule]:
    """`skip` such requests come by, and the next one is held."""
    rule = target.proxy.add(Rule(moment.api, held, seconds=HELD_SECONDS, skip=skip, containing=moment.containing))
    try:
        yield rule
    finally:
        target.proxy.remove(rule)


def killed_at(moment: Moment, held: Action, skip: int, path: Path, flow: Flow, target: Target, *more: str) -> bool:
    """Begin a run and kill it at that moment. False: it has ended before."""
    with running(path, flow, *more) as process, held_at(moment, held, skip, target) as rule:
        until(lambda: rule.hits or process.poll() is not None)
        return bool(rule.hits)
