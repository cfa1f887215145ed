"""A failover, failback or cut-over whose process is killed after its last stage, and that somebody types again: it is done."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from tests.opened import read_recovery
from tests.recovery.rooms import Room, commit, everything
from tests.waiting import until
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.config import Flow
from ferry.errors import RecoveryStopped
from ferry.ledger.recovery_record import current_record
from ferry.ledger.run_report import RunReport

pytestmark = [pytest.mark.brokers, pytest.mark.long]

RunFlow = Callable[[Flow], RunReport]
QUIET = ("--yes", "--quiet-seconds", "0.5")


def killed_at_the_end(room: Room, command: str, stage: str, *options: str) -> None:
    """Nobody reads what the process says: so it waits after its last stage, until it is killed."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    line = [sys.executable, "-m", "ferry.cli.main", command, str(room.config), "--flow", room.there.name, "--json", *options]
    with subprocess.Popen(line, stdout=writer, stderr=subprocess.DEVNULL) as process:
        until(lambda: _stage(room) == stage, lambda: f"{command} never came to {stage}")
        assert process.poll() is None
        process.kill()
    os.close(reader)
    os.close(writer)
    assert process.returncode == -9


def _stage(room: Room) -> str:
    record = current_record(room.there, read_recovery(room.there, stable=False))
    return record.stage if record.step == "done" else ""


@pytest.mark.parametrize("room", ["identity"], indirect=True)
def test_typed_again(room: Room, run_flow: RunFlow) -> None:
    """Exit code 0, since when, and nothing is written."""
    group = f"{room.topic}-g"
    with pytest.raises(RecoveryStopped, match="nothing to come back from"):
        room.command("failback", "--yes")
    room.produce(room.source, room.topic, 30)
    run_flow(room.there)
    commit(room.source, group, room.topic, {0: 5, 1: 7})
    for command, stage, options in (
        ("failover", "failed-over", ("--yes",)),
        ("failback", "replicating", QUIET),
        ("cutover", "cut-over", QUIET),
    ):
        killed_at_the_end(room, command, stage, *options)
        then = current_record(room.there, read_recovery(room.there))
        before = everything(room.source), everything(room.target)
        ended, document = room.command(command, *options)
        assert (ended.exit_code, document["stage"], document["groups"], document["recovery"]) == (0, stage, [], then.recovery)
        assert current_record(room.there, read_recovery(room.there)) == then
        for side, was in zip((room.source, room.target), before, strict=True):
            assert everything(side)["groups"] == was["groups"]
        said = CliRunner().invoke(app, [command, str(room.config), "--flow", room.there.name, *options]).stdout
        assert re.search(rf" is {stage} since 20\S+ \({re.escape(then.phase)}\): done, no group is left to move", said), said
        room.produce(room.target if stage != "replicating" else room.source, room.topic, 10)
        if stage == "cut-over":  # what comes back with the flow in the other direction is no producer that nobody stopped
            run_flow(room.back)
            assert room.command(command, *options)[0].exit_code == 0
