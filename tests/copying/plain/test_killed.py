"""Runs without transactions are killed with SIGKILL, at moments that a seed chooses; the next run goes on.

A proxy holds one request or its answer: of records, receipts, heads, positions, or the taking of a name. So it is known what the run was
doing. A request that was held reaches the broker while the next run is at work.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.copying.plain.conftest import Copy, Target
from tests.copying.plain.killed import MOMENTS, killed_at
from tools.proxy.rules import Action

from ferry.config import Flow
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

# What one flush holds at most (ferry.transaction.mb, and what is sent before the lane looks again), in records of a KB.
FLUSH_RECORDS = 2 * 1024


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
    dice = random.Random(seed)
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
    assert twice <= struck * FLUSH_RECORDS
    print(f"{twice} records twice after {struck} kills")  # noqa: T201 - what was seen
    copy.assert_verified()
    copy.assert_never_after(places)
    places = copy.places(copy.commit_groups(dice))
    copy.assert_never_after(places)
    copy.assert_exact(places)
