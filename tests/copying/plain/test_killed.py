"""Runs without transactions are killed with SIGKILL, at moments that a seed chooses; the next run goes on.

A proxy holds one request or its answer: of records, receipts, heads, positions, or the taking of a name. So it is known what the run was
doing. A request that was held reaches the broker while the next run is at work.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.copying.plain.conftest import Copy, Target
from tests.waiting import until
from tools.proxy.rules import PRODUCE, Action, Rule

from ferry.config import Flow, load_config
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

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


@pytest.fixture
def path(flow: Flow, tmp_path: Path) -> Path:
    return tmp_path / "mm2.properties"


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


def killed_at(moment: Moment, held: Action, skip: int, path: Path, flow: Flow, target: Target, *more: str) -> bool:
    """Begin a run and kill it at that moment. False: it has ended before."""
    rule = target.proxy.add(Rule(moment.api, held, seconds=HELD_SECONDS, skip=skip, containing=moment.containing))
    with running(path, flow, *more) as process:
        until(lambda: rule.hits or process.poll() is not None)
    target.proxy.remove(rule)
    return bool(rule.hits)


@pytest.mark.parametrize("held", [Action.DELAY_REQUEST, Action.DELAY_ANSWER], ids=["request", "answer"])
@pytest.mark.parametrize("what", MOMENTS)
@pytest.mark.long
def test_what_is_copied_twice_is_named(
    what: str,
    held: Action,
    path: Path,
    flow: Flow,
    copy: Copy,
    fill: Callable[[int], None],
    run_flow: Callable[..., RunReport],
    target: Target,
) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")  # noqa: T201 - to repeat it
    dice = random.Random(seed)  # noqa: S311 - it draws moments
    struck, places = 0, []
    for _ in range(3):
        fill(6_000)
        placed = copy.commit_groups(dice)
        struck += killed_at(MOMENTS[what], held, dice.randrange(MOMENTS[what].most), path, flow, target)
        places += copy.places(placed)
    assert struck
    report = run_flow(flow)
    assert report.exit_code is ExitCode.DONE
    twice = copy.assert_bounded()
    print(f"{twice} records twice after {struck} kills")  # noqa: T201 - what was seen
    copy.assert_verified()
    copy.assert_never_after(places)
    places = copy.places(copy.commit_groups(dice))
    copy.assert_never_after(places)
    copy.assert_exact(places)
