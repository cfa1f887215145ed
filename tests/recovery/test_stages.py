"""What a failover, failback and cut-over do, in which order, and what a dry run leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from ferry.cli.moves import Call
from ferry.errors import ExitCode
from ferry.ledger.state import RecoveryRecord
from ferry.recovery import recovery_report
from ferry.recovery.options import Mode, RecoveryOptions
from ferry.recovery.recovery_report import Confirmation, RecoveryPlan, RecoveryReport, Stopwatch
from ferry.recovery.stages import Stage, stages

pytestmark = pytest.mark.unit

COMMANDS = ["failover", "failback", "cutover"]


def carried_out(command: str, mode: Mode) -> tuple[list[Stage], list[Confirmation]]:
    """The stages that a command hands out, and what its last one is called with."""
    done: list[Stage] = []
    written: list[Confirmation] = []

    def does(stage: Stage, plan: RecoveryPlan) -> RecoveryPlan:
        done.append(stage)
        return plan

    def write(plan: RecoveryPlan, confirmed: Confirmation) -> RecoveryReport:
        written.append(confirmed)
        return RecoveryReport(plan, RecoveryRecord("A->B", "", "", "failed-over", "", 0, 0))

    unset = {"groups": None, "backwards": False, "abandon": False, "master": "inline", "report": None, "as_json": False}
    dry, rehearse = mode is Mode.DRY_RUN, mode is Mode.REHEARSAL
    call = Call(command, Path("mm2.properties"), "A->B", dry_run=dry, rehearse=rehearse, yes=True, **unset)  # type: ignore[arg-type]
    with pytest.raises(typer.Exit) as ended:
        call.carry_out(stages(command), RecoveryOptions(command, "run", mode), does, write)
    assert ended.value.exit_code == ExitCode.DONE
    return done, written


@pytest.mark.parametrize("command", COMMANDS)
def test_a_person_confirms_the_plan_before_groups_are_written(command: str) -> None:
    assert stages(command)[0] is Stage.CHECK
    assert stages(command)[-3:] == (Stage.PLAN, Stage.CONFIRM, Stage.WRITE)
    done, (confirmed,) = carried_out(command, Mode.REAL)
    assert (*done, Stage.CONFIRM, Stage.WRITE) == stages(command)
    assert confirmed.by.endswith("by --yes")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("mode", [Mode.DRY_RUN, Mode.REHEARSAL])
def test_a_dry_run_reads_and_prints_all_stages(command: str, mode: Mode, capsys: pytest.CaptureFixture[str]) -> None:
    assert carried_out(command, mode) == ([Stage.CHECK, Stage.PLAN], [])
    assert f"a real {command} does this: {'; '.join(stages(command))}\n" in capsys.readouterr().out


def test_producers_are_stopped_before_the_rest_is_copied_and_compared() -> None:
    for command in ("failback", "cutover"):
        at = stages(command).index
        assert at(Stage.ASK_STOPPED) < at(Stage.DRAIN) < at(Stage.COMPARE) < at(Stage.PLAN)
    assert Stage.ASK_STOPPED not in stages("failover")


def test_what_a_person_does_not_want_is_left_out() -> None:
    assert stages("failback", [Stage.COPY_TAIL, Stage.COMPARE]) == tuple(
        stage for stage in stages("failback") if stage not in {Stage.COPY_TAIL, Stage.COMPARE}
    )


def test_the_rest_of_a_step_counts_as_this_step(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 1.0, 5.0, 7.0, 8.0, 12.0])
    monkeypatch.setattr(recovery_report.clock, "monotonic", lambda: next(moments))
    watch = Stopwatch()
    for name in ("copy", "drain and verify", "drain and verify"):
        with watch.step(name):
            pass
    assert watch.steps == (("copy", 1.0), ("drain and verify", 6.0))
