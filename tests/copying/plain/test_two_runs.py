"""Two runs of a flow without transactions: the newer one fences the older one, at every moment of it."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.copying.fencing.scripted import Scripted, never_ran
from tests.copying.plain.conftest import Copy, Target
from tests.copying.plain.killed import MOMENTS, held_at, running
from tests.opened import fenced_writer, run_lanes
from tests.waiting import until
from tools.proxy.rules import Action

from ferry.config import Flow
from ferry.copying import plain_coordinator
from ferry.errors import ExitCode, Superseded
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]


@pytest.mark.long
@pytest.mark.parametrize("what", MOMENTS)
def test_a_run_that_wakes_up_writes_no_receipt_and_no_head(
    what: str, flow: Flow, path: Path, copy: Copy, fill: Callable[[int], None], run_flow: RunFlow, target: Target
) -> None:
    """It was suspended while a request of it was under way, and goes on after a newer run has copied everything."""
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")  # noqa: T201 - to repeat it
    dice = random.Random(seed)
    fill(6_000)
    with running(path, flow) as older, held_at(MOMENTS[what], Action.DELAY_ANSWER, dice.randrange(MOMENTS[what].most), target) as rule:
        until(lambda: rule.hits or older.poll() is not None)
        older.send_signal(signal.SIGSTOP)
        report = run_flow(flow)
        assert report.exit_code is ExitCode.DONE
        fill(600)
        older.send_signal(signal.SIGCONT)
        until(lambda: older.poll() is not None)
        assert older.returncode in {ExitCode.SUPERSEDED, ExitCode.DONE}  # done: it had been told that its last head is there
    places = copy.places(copy.commit_groups(dice))
    assert run_flow(flow).exit_code is ExitCode.DONE
    copy.assert_bounded()
    copy.assert_verified()
    copy.assert_never_after(places)


def test_a_newer_holder_fences_and_nobody_comes_back(flow: Flow, fill: Callable[[int], None], run_flow: RunFlow) -> None:
    fill(3)
    run_flow(flow)
    name, place = flow.transactional_id("run"), {(flow.state_topic, 0): [(b'{"sync":"x"}', None)]}
    with fenced_writer(flow, name) as older:
        older.confirm()
        older.write(place)
        with fenced_writer(flow, name) as newer:
            for _ in range(2):
                with pytest.raises(Superseded):
                    older.confirm()
                with pytest.raises(Superseded):
                    older.write(place)
                newer.confirm()
                newer.write(place)


@pytest.mark.long
def test_lanes_of_an_older_run_write_nothing(flow: Flow, copy: Copy, fill: Callable[[int], None], run_flow: RunFlow) -> None:
    fill(3_000)
    kept = Scripted(never_ran)
    assert run_flow(flow, runner=kept).exit_code is ExitCode.DONE
    (job, stale), (_, renewed) = kept.calls
    for tasks in (stale, renewed):  # one whose producer id was replaced, one whose epoch is old
        results = list(run_lanes(job, tasks))
        assert [result.failure is not None and result.failure.error for result in results] == ["Superseded"] * len(tasks)
    assert copy.assert_bounded() == 0


@pytest.mark.long
def test_when_the_epochs_are_used_up_a_run_goes_on_with_another_producer_id(
    flow: Flow, copy: Copy, fill: Callable[[int], None], run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_coordinator, "LAST_EPOCH", 4)
    for _ in range(2):
        fill(3_000)
        assert run_flow(flow).exit_code is ExitCode.DONE
    with fenced_writer(flow, flow.transactional_id("run")) as older:
        before = older.identity
        for _ in range(3):
            older.confirm()
        assert older.identity.producer_id != before.producer_id
        with fenced_writer(flow, flow.transactional_id("run")), pytest.raises(Superseded):
            older.confirm()
    assert copy.assert_bounded() == 0
