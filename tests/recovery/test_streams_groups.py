"""Groups of real Kafka Streams applications go to the other cluster: no record is read again, and none is left out."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from tests.opened import explain_group, open_groups, sync_groups
from tests.recovery.rooms import Room
from tests.waiting import NEVER_SECONDS, until
from tools.kafka import SandboxCluster
from tools.kafka.jars import streams_jars
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.config import Flow
from ferry.ledger.run_report import RunReport
from ferry.sandbox.jars import KAFKA_VERSION, java

pytestmark = [pytest.mark.brokers, pytest.mark.long]

RunFlow = Callable[[Flow], RunReport]
PROGRAM = Path(__file__).parents[1] / "java" / "StreamsApp.java"
RUNNING, FAILED = "state RUNNING", "state ERROR"


class Application:
    """What a running application said until now."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @property
    def read(self) -> list[int]:
        return sorted(int(line.split()[1]) for line in self.lines if line.startswith("read "))

    def reads(self, numbers: range) -> None:
        """Waits until it has read as many records as `numbers` are, and holds them against `numbers`."""
        until(lambda: len(self.read) >= len(numbers) or FAILED in self.lines, lambda: self.lines)
        assert self.read == list(numbers), self.lines


@contextmanager
def application(
    cluster: SandboxCluster, group: str, topic: str, state: Path, *more: str, version: str = KAFKA_VERSION
) -> Iterator[Application]:
    """A member of `group`, which leaves at the end. Its stderr is among what it said."""
    command = [java(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{streams_jars(version)}/*", str(PROGRAM)]
    arguments = [cluster.bootstrap, group, topic, f"state.dir={state}", *more]
    found = Application()
    with subprocess.Popen(
        [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    ) as process:
        assert process.stdin
        assert process.stdout
        reader = Thread(target=lambda lines: found.lines.extend(map(str.rstrip, lines)), args=[process.stdout])
        reader.start()
        try:
            until(lambda: {RUNNING, FAILED} & {*found.lines} or process.poll() is not None, lambda: found.lines)
            yield found
        finally:
            process.stdin.close()
            process.wait(NEVER_SECONDS)
            reader.join()


@pytest.mark.parametrize("room", ["default"], indirect=True)
def test_a_group_of_the_streams_protocol(room: Room, run_flow: RunFlow, tmp_path: Path) -> None:
    """KIP-1071. On the other cluster the group is first one that only commits, then a streams group too."""
    group, protocol = f"{room.topic}-{secrets.token_hex(4)}", "group.protocol=streams"
    for _ in range(2):  # two transactions: offsets shift
        room.produce(room.source, room.topic, 20)
        run_flow(room.there)
    with application(room.source, group, room.topic, tmp_path / "A", protocol) as reading:
        reading.reads(range(40))
        explained = CliRunner().invoke(app, ["explain", str(room.config), "--flow", room.there.name, "--group", group])
        assert f"{room.there.source.alias}: Stable, streams\n" in explained.output
    outcome = sync_groups(room.there)
    assert [(change.what, change.detail, change.reason) for change in outcome.changes] == [
        (f"group {group}, {room.remote}-{partition}", "none -> 21", "") for partition in range(2)
    ]
    with application(room.target, group, room.remote, tmp_path / "B", protocol) as idle:
        until(lambda: explain_group(room.there, group).target.state == "Stable")
        seen = explain_group(room.there, group)
        assert (seen.source.type, seen.source.state, seen.target.type) == ("streams", "Empty", "streams")
        assert seen.obstacles[1:] == (f"it is Stable on {room.there.target.alias}, and Ferry writes only groups without members",)
    assert idle.read == []
    room.produce(room.source, room.topic, 10)
    with application(room.source, group, room.topic, tmp_path / "A", protocol) as reading:
        reading.reads(range(40, 50))
    ended, document = room.command("failover", "--yes")
    assert (ended.exit_code, [(entry["group"], entry["done"], entry["exact"]) for entry in document["groups"]]) == (
        0,
        [(group, True, True)],
    )
    room.produce(room.target, room.remote, 4)
    with application(room.target, group, room.remote, tmp_path / "B", protocol) as reading:
        reading.reads(range(50, 54))
    with open_groups(room.there.target) as groups:
        assert {entry.type for entry in groups.list() if entry.group == group} == {"streams"}


@pytest.mark.parametrize("room", ["default"], indirect=True)
def test_an_application_that_reads_its_metadata_strictly(room: Room, run_flow: RunFlow, tmp_path: Path) -> None:
    """Kafka Streams 2.8 ends if the metadata of an offset are not its own. Without any it goes on."""
    group, old = f"{room.topic}-{secrets.token_hex(4)}", "2.8.2"
    room.produce(room.source, room.topic, 1)
    run_flow(room.there)
    with application(room.source, group, room.topic, tmp_path / "A", version=old) as reading:
        reading.reads(range(1))
    (first, second) = sync_groups(room.there).changes
    assert (first.reason, second.reason) == ("", "the group has no offset there: from the beginning of what was copied")
    room.produce(room.target, room.remote, 2)
    with application(room.target, group, room.remote, tmp_path / "B", version=old) as reading:
        reading.reads(range(1, 3))
