"""One course of the drill: applications move from A to B and back while everything is killed, and nobody loses or repeats a record.

Producers and consumers run on both sides, and runs go on, also while the flow is failed over. The commands are processes of their own that
are killed by SIGKILL at drawn moments and started again; brokers are killed as well. At the end every group must have worked off every
acknowledged record of both origins exactly once, in the order of each origin's partition, and the logs of both sides must hold each once.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic
from tests.drills.drill.clients import Reader, Work, Writer
from tests.waiting import until
from tools.kafka import SandboxCluster, read_all

PARTITIONS = 3
TOPIC = "orders"
COMMAND_SECONDS = 240.0
# When a command is killed, in seconds: no run ends before the first.
EARLIEST_KILL, LATEST_KILL = 0.3, 8.0
QUICK, SLOW, RESTING = "g-quick", "g-slow", "g-resting"
SLOW_PACE = 0.03


@dataclass
class Course:
    """`gone`: the source's broker is killed before the failover, and comes back after it."""

    source: SandboxCluster
    target: SandboxCluster
    directory: Path
    policy: str
    gone: bool
    seed: int
    kills: int = 2
    seconds: float = 3.0
    acked: dict[str, dict[int, list[str]]] = field(default_factory=lambda: {"a": defaultdict(list), "b": defaultdict(list)})
    work: dict[str, Work] = field(default_factory=lambda: {group: Work() for group in (QUICK, SLOW, RESTING)})
    killed: list[str] = field(default_factory=list)
    latest_kill: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.identity = self.policy == "identity"
        self.config = self.directory / f"{self.policy}-{self.gone}.properties"
        lines = [
            "clusters = A, B",
            f"A.bootstrap.servers = {self.source.bootstrap}",
            f"B.bootstrap.servers = {self.target.bootstrap}",
            "A->B.enabled = true",
            "B->A.enabled = true",
            f"topics = {TOPIC}",
            "groups = g-.*",
            "replication.factor = 1",
            "ferry.internal.topics.replication.factor = 1",
            "ferry.lanes = 2",
            "sync.group.offsets.enabled = true",
            "sync.group.offsets.interval.seconds = 1",
            "emit.checkpoints.interval.seconds = 1",
            "sync.topic.acls.enabled = false",
            *(["replication.policy.class = IdentityReplicationPolicy"] if self.identity else []),
        ]
        self.config.write_text("\n".join(lines) + "\n")

    @property
    def on_target(self) -> list[str]:
        """What applications read on B."""
        return [TOPIC] if self.identity else [TOPIC, f"A.{TOPIC}"]

    @property
    def on_source(self) -> list[str]:
        """What applications read on A after they came back."""
        return [TOPIC] if self.identity else [TOPIC, f"B.{TOPIC}"]

    def play(self) -> None:
        """There and back."""
        for cluster in (self.source,) if self.identity else (self.source, self.target):
            client = AdminClient(cluster.client_settings())
            client.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        self._before()
        self._fail_over()
        self._at_the_target()
        self._fail_back()
        self._home_again()
        self._judge()

    def _before(self) -> None:
        """Applications at the source, runs beside them."""
        self.a = Writer("a", self.source.bootstrap, TOPIC, PARTITIONS, self.acked["a"], first=0)
        self.a.start()
        self.readers = self._readers(self.source, [TOPIC])
        self.ferry("run", "--master", "inline")
        time.sleep(self.seconds)
        self.readers.pop(RESTING).halt()  # its position grows old
        while not self.killed:
            self.ferry("run", "--master", "inline", kill=True)
        time.sleep(self.seconds / 2)
        self._stop_readers()

    def _fail_over(self) -> None:
        if self.gone:
            self.ferry("run", "--master", "inline")  # the last one that came through; producers go on
            time.sleep(0.5)
            self.source.kill()
            self.a.halt()
        assert self.ferry("failover", "--rehearse").returncode == 0
        for _ in range(self.kills):
            self.ferry("failover", "--yes", kill=True)
        ended = self.ferry("failover", "--yes")
        assert ended.returncode == 0, ended.stderr
        self.over = json.loads(ended.stdout)
        assert self.over["stage"] == "failed-over"
        assert (self.over["positions_from"] == "checkpoints") == self.gone
        if not self.gone:
            self.a.halt()  # it went on meanwhile: these records come later

    def _at_the_target(self) -> None:
        """Applications at the target; the source comes back, and runs go on in both directions."""
        self.b = Writer("b", self.target.bootstrap, TOPIC, PARTITIONS, self.acked["b"], first=0)
        self.b.start()
        self.readers = self._readers(self.target, self.on_target)
        time.sleep(self.seconds)
        if self.gone:
            self.source.restart()
        self._settle_unacknowledged()
        self.ferry("run", "--master", "inline", kill=True)
        self.ferry("run", "--master", "inline")
        total = sum(map(len, self.acked["a"].values()))
        self.readers[SLOW].pace = 0
        until(
            lambda: all(self.work[name].count("a") >= total for name in self.work),
            lambda: "never read all of the source's records at the target",
        )
        self.readers.pop(RESTING).halt()
        self.readers[SLOW].pace = SLOW_PACE  # it lags behind again
        time.sleep(self.seconds / 2)

    def _settle_unacknowledged(self) -> None:
        """What the source's log holds counts, whether its killed broker had answered or not."""
        for number, records in enumerate(read_all(self.source.bootstrap, TOPIC)):
            self.acked["a"][number] = [(record.value or b"").decode() for record in records if (record.value or b"").startswith(b"a:")]

    def _fail_back(self) -> None:
        refused = self.ferry("failback", "--yes", "--quiet-seconds", "1")
        assert refused.returncode == 5, refused.stderr
        assert "records still arrive" in refused.stderr
        self.b.halt()
        self._stop_readers()
        self._failback_tried()
        self.target.kill()
        self.target.restart()
        for _ in range(self.kills - 1):
            self._failback_tried()
        self._failback_told(self.ferry("failback", "--yes", "--quiet-seconds", "0.5"))  # which may be done already
        assert self._stage() == "replicating"

    def _failback_tried(self) -> None:
        """Killed at a drawn moment, unless it was quicker than its killer. An earlier try may have done everything."""
        tried = self.ferry("failback", "--yes", "--quiet-seconds", "0.5", kill=True)
        if tried.returncode >= 0:
            self._failback_told(tried)

    def _failback_told(self, ended: subprocess.CompletedProcess[str]) -> None:
        assert ended.returncode == 0, ended.stderr
        told = json.loads(ended.stdout)
        assert told["stage"] == "replicating"
        assert [entry["group"] for entry in told["groups"] if not entry["exact"]] == [], told["groups"]

    def _stage(self) -> str:
        """Where the flow stands, as `ferry status` says."""
        status = self.ferry("status")
        assert status.returncode == 0, status.stderr
        return str(json.loads(status.stdout)["flows"][0]["stage"])

    def _home_again(self) -> None:
        self.a = Writer("a", self.source.bootstrap, TOPIC, PARTITIONS, self.acked["a"], first=self.a.number)
        self.a.start()
        self.readers = self._readers(self.source, self.on_source, pace=0)
        time.sleep(self.seconds / 2)
        self.a.halt()
        wanted = {name: sum(map(len, self.acked[name].values())) for name in self.acked}
        until(
            lambda: all(work.count(name) >= count for work in self.work.values() for name, count in wanted.items()),
            lambda: "never read everything at home",
        )
        time.sleep(2)  # what would come twice comes now
        self._stop_readers()
        for flow in ("A->B", "B->A"):
            assert self.ferry("run", "--master", "inline", flow=flow).returncode == 0

    def _judge(self) -> None:
        expected = {(name, number): list(values) for name, found in self.acked.items() for number, values in found.items()}
        for group, work in self.work.items():
            for key, values in expected.items():
                assert work.done[key] == values, (
                    f"group {group}, records of {key[0]}, partition {key[1]}: {_difference(work.done[key], values)}"
                )
        for cluster, topics in ((self.source, self.on_source), (self.target, self.on_target)):
            seen: dict[tuple[str, int], list[str]] = defaultdict(list)
            for topic in topics:
                for number, records in enumerate(read_all(cluster.bootstrap, topic)):
                    for record in records:
                        value = (record.value or b"").decode()
                        seen[value.partition(":")[0], number].append(value)
            for key, values in expected.items():
                assert seen[key] == values, (
                    f"{cluster.bootstrap}, records of {key[0]}, partition {key[1]}: {_difference(seen[key], values)}"
                )

    def ferry(self, command: str, *options: str, flow: str = "A->B", kill: bool = False) -> subprocess.CompletedProcess[str]:
        """A command as a process of its own, killed at a drawn moment if asked to; what was quicker is killed earlier the next time."""
        line = [sys.executable, "-m", "ferry.cli.main", command, str(self.config), "--flow", flow, "--json", *options]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy())
        killer = None
        if kill:
            moment = self.chance.uniform(EARLIEST_KILL, self.latest_kill.get(command, LATEST_KILL))
            killer = threading.Timer(moment, process.kill)
            killer.start()
        began = time.monotonic()
        try:
            out, err = process.communicate(timeout=COMMAND_SECONDS)
        finally:
            process.kill()
            if killer is not None:
                killer.cancel()
        if process.returncode < 0:
            self.killed.append(command)
        elif kill:
            self.latest_kill[command] = max(EARLIEST_KILL, (time.monotonic() - began) * 0.9)
        return subprocess.CompletedProcess(line, process.returncode, out, err)

    def _readers(self, cluster: SandboxCluster, topics: Sequence[str], pace: float = SLOW_PACE) -> dict[str, Reader]:
        paces = {SLOW: pace}
        found = {group: Reader(group, cluster.bootstrap, topics, self.work[group], pace=paces.get(group, 0.0)) for group in self.work}
        for reader in found.values():
            reader.start()
        return found

    def _stop_readers(self) -> None:
        for reader in self.readers.values():
            reader.halt()
            assert not reader.trouble, reader.trouble
        self.readers = {}


def _difference(found: Sequence[str], wanted: Sequence[str]) -> dict[str, Any]:
    """What to look at first."""
    at = next((index for index, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), min(len(found), len(wanted)))
    return {
        "found": len(found),
        "wanted": len(wanted),
        "first difference at": at,
        "there": found[at : at + 3],
        "instead of": wanted[at : at + 3],
    }
