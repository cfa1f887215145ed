"""Runs that follow without transactions: killed, and taken over from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.copying.plain.conftest import Copy, Target
from tests.copying.plain.killed import MOMENTS, killed_at, running
from tests.waiting import until
from tools.kafka import read_all
from tools.kafka.reading import NotReadable
from tools.proxy.rules import Action

from ferry.config import Flow
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport

pytestmark = [pytest.mark.brokers, pytest.mark.long]


def copied(copy: Copy) -> int:
    try:
        return sum(map(len, read_all(copy.target.bootstrap, copy.remote)))
    except NotReadable:
        return 0


@pytest.mark.parametrize("what", ["records", "receipts", "heads"])
def test_one_that_is_killed(
    what: str, path: Path, flow: Flow, copy: Copy, fill: Callable[[int], None], run_flow: Callable[..., RunReport], target: Target
) -> None:
    fill(3_000)
    assert killed_at(MOMENTS[what], Action.DELAY_ANSWER, 1, path, flow, target, "--follow", "1h")
    fill(300)
    assert run_flow(flow).exit_code is ExitCode.DONE
    copy.assert_bounded()
    copy.assert_verified()


def test_one_that_is_taken_over_from(
    path: Path, flow: Flow, copy: Copy, fill: Callable[[int], None], run_flow: Callable[..., RunReport]
) -> None:
    fill(3_000)
    with running(path, flow, "--follow", "1h") as older:
        until(lambda: copied(copy) >= 3_000)
        with running(path, flow, "--follow", "1h"):
            until(lambda: older.poll() is not None)
            assert older.returncode == ExitCode.DONE
            fill(3_000)
            until(lambda: copied(copy) >= 6_000)
    fill(300)
    assert run_flow(flow).exit_code is ExitCode.DONE
    copy.assert_bounded()
    copy.assert_verified()
