"""One source, one target, and a flow with names of its own on both, by the real command."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.drills.matrix.source_data import AGAIN, HISTORY, TOPICS
from tests.drills.matrix.stage import Stage
from tests.waiting import NEVER_SECONDS
from tools.kafka import SandboxCluster
from tools.kafka.releases import NEWEST, OLDEST

FERRY = str(Path(sys.executable).parent / "ferry")
DONE = 0
LINES = (
    "replication.factor = 1",
    "ferry.internal.topics.replication.factor = 1",
    "heartbeats.topic.replication.factor = 1",
    "checkpoints.topic.replication.factor = 1",
    "offset-syncs.topic.replication.factor = 1",
    "offset-syncs.topic.location = target",
    "heartbeats.replication.enabled = false",  # other pairs share the source
    "sync.group.offsets.enabled = true",
    "sync.group.offsets.interval.seconds = 0",
    "emit.checkpoints.interval.seconds = 0",
)


class Pair:
    """The clusters, the files and the commands."""

    def __init__(
        self,
        name: str,
        clusters: tuple[SandboxCluster, SandboxCluster],
        directory: Path,
        *,
        addresses: tuple[str, str] | None = None,
        lines: Sequence[str] = LINES,
        master: str = "inline",
    ) -> None:
        """`clusters`: source and target. `addresses`: of both in the files, if these differ. `lines`: more lines of the files."""
        self.name, (self.source, self.target), self.master = name, clusters, master
        self._addresses = addresses or (self.source.bootstrap, self.target.bootstrap)
        self._alias, self._late, self._more = f"A{name}", f"L{name}", lines
        lines = self._lines(self._alias, rf"{name}\\..*, {name}-{AGAIN}")
        self.config = _written(directory / "mm2.properties", lines)
        # Slow enough to be killed on its way.
        self.slow = _written(directory / "slow.properties", [*lines, "ferry.max.rate.mb = 0.6", "ferry.transaction.mb = 1"])
        late = [*self._lines(self._late, f"{name}-{HISTORY}"), "ferry.start = latest"]
        self.late = _written(directory / "late.properties", late)

    @classmethod
    def of_releases(cls, stage: Stage, old: str, new: str, directory: Path) -> Self:
        """From a source of release `old` to a target of release `new`."""
        name = f"s{old}t{new}".replace(".", "").replace("-", "")
        clusters = stage.cluster("source", old), stage.cluster("target", new)
        return cls(name, clusters, directory, master="local[2]" if {old, new} == {OLDEST, NEWEST} else "inline")

    def _lines(self, alias: str, topics: str) -> list[str]:
        return [
            f"clusters = {alias}, B",
            f"{alias}.bootstrap.servers = {self._addresses[0]}",
            f"B.bootstrap.servers = {self._addresses[1]}",
            f"{alias}->B.enabled = true",
            f"{alias}->B.topics = {topics}",
            f"{alias}->B.groups = {self.name}.*",
            *self._more,
        ]

    def topics(self) -> dict[str, str]:
        return {f"{self.name}.{name}": f"{self._alias}.{self.name}.{name}" for name in TOPICS}

    def again(self) -> tuple[str, str]:
        return f"{self.name}-{AGAIN}", f"{self._alias}.{self.name}-{AGAIN}"

    def history(self) -> dict[str, str]:
        return {f"{self.name}-{HISTORY}": f"{self._late}.{self.name}-{HISTORY}"}

    def ferry(self, command: str, *options: str, late: bool = False, code: int = DONE) -> Any:
        """What the command prints as JSON; `late`: of the flow that began at the end."""
        done = self.done(command, *options, late=late)
        assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stderr[-3000:]}\n{_failed(done.stdout)}"
        return json.loads(done.stdout)

    def diagnosed(self) -> list[dict[str, str]]:
        """The findings of `ferry doctor`, whatever else of the machine is wrong."""
        findings: list[dict[str, str]] = json.loads(self.done("doctor").stdout)["findings"]
        return findings

    @property
    def alias(self) -> str:
        """Of the source."""
        return self._alias

    @property
    def flow(self) -> str:
        """Its name."""
        return f"{self._alias}->B"

    def refused(self, command: str, *, code: int) -> str:
        """What the command says on stderr; it must end with that code."""
        done = self.done(command)
        assert done.returncode == code, done.stderr
        return done.stderr

    def remote_names(self) -> set[str]:
        """What the flow has on the target."""
        client = Consumer({**self.target.client_settings(), "group.id": "look"})
        try:
            return {name for name in client.list_topics(timeout=10).topics if self._alias in name}
        finally:
            client.close()

    def done(self, command: str, *options: str, late: bool = False) -> subprocess.CompletedProcess[str]:
        """The command, however it ends."""
        config, alias = (self.late, self._late) if late else (self.config, self._alias)
        arguments = [FERRY, command, str(config), *options, "--flow", f"{alias}->B", "--json"]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=NEVER_SECONDS, check=False)

    def run_and_kill(self) -> int:
        """A run that is killed once some of it is committed; how many records those are."""
        arguments = [FERRY, "run", str(self.slow), "--flow", f"{self._alias}->B", "--master", "inline"]
        with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as started:
            try:
                deadline = time.monotonic() + NEVER_SECONDS
                while not (found := self._committed()):
                    assert started.poll() is None, f"the run ended: {'' if started.stderr is None else started.stderr.read()[-3000:]}"
                    assert time.monotonic() < deadline, "nothing was committed"
                    time.sleep(0.05)
                return found
            finally:
                started.kill()

    def _committed(self) -> int:
        client = Consumer({**self.target.client_settings(), "group.id": "look", "isolation.level": "read_committed", "log_level": 0})
        try:
            known = client.list_topics(timeout=10).topics
            remote = [TopicPartition(name, number) for name in self.topics().values() if name in known for number in known[name].partitions]
            return sum(client.get_watermark_offsets(one, timeout=10)[1] for one in remote)
        except KafkaException:  # topics that are being created
            return 0
        finally:
            client.close()


def _failed(text: str) -> str:
    """What a document says of failures, in the run and in its syncs; all of it where it is none."""
    try:
        document = json.loads(text)
    except ValueError:
        return text[-3000:]
    syncs = {name: sync["failed"] for name, sync in document.get("syncs", {}).items() if sync["failed"]}
    return json.dumps({"failed": document.get("failed"), "losses": document.get("losses"), "syncs": syncs}, indent=1)[:3000]


def _written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="latin-1")
    return path
