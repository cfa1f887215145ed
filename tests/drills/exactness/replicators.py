"""The two that are compared, over one source and with a target each, and what they say of a group's position."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection
from contextlib import closing
from datetime import datetime
from pathlib import Path

from tests.drills.exactness.following import Reader
from tests.opened import carry_out, copied
from tools.kafka import SandboxCluster

from ferry.config import Flow, load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.sandbox.ports import free_ports
from ferry.syncs.names import SyncName
from ferry.wire.internal_records import Checkpoint

FERRY, MM2 = "Ferry", "MM2"
CHECKPOINTS = ("A.checkpoints.internal", 0)
# By then MM2 has emitted every checkpoint that it ever will: it looks every second.
QUIET_SECONDS = 15.0
# MM2 needs 15 to 30 s to its first record on a busy machine.
SETTLING_SECONDS = 120.0

Positions = dict[tuple[str, str, int], int]

# What both are given; the replication factors because each cluster has one broker.
COMMON = {
    "clusters": "A, B",
    "A->B.enabled": "true",
    "B->A.enabled": "false",
    "emit.heartbeats.enabled": "false",
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "offset-syncs.topic.location": "target",
    "emit.checkpoints.interval.seconds": "1",
}
MM2_SETTINGS = {
    "tasks.max": "2",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "offset.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "B.exactly.once.source.support": "enabled",
    "A.consumer.isolation.level": "read_committed",
    "dedicated.mode.enable.internal.rest": "true",
}
FERRY_SETTINGS = {"ferry.internal.topics.replication.factor": "1"}
SHOWN = {key: value for key, value in {**COMMON, **MM2_SETTINGS}.items() if not key.endswith("replication.factor")}


def addressed(source: SandboxCluster, target: SandboxCluster, topics: Collection[str]) -> dict[str, str]:
    """The common settings, with addresses and topics."""
    return {**COMMON, "A.bootstrap.servers": source.bootstrap, "B.bootstrap.servers": target.bootstrap, "A->B.topics": ",".join(topics)}


def mm2_properties(source: SandboxCluster, target: SandboxCluster, topics: Collection[str]) -> dict[str, str]:
    """MM2's file: exactly-once; everything that is not named has MM2's default."""
    return {**addressed(source, target, topics), **MM2_SETTINGS, "listeners": f"http://127.0.0.1:{free_ports(1)[0]}"}


def ferry_flow(path: Path, source: SandboxCluster, target: SandboxCluster, topics: Collection[str], start: str) -> Flow:
    """Ferry's flow; `start` is ferry.start."""
    settings = {**addressed(source, target, topics), **FERRY_SETTINGS, "A->B.ferry.start": start}
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()), encoding="latin-1")
    return load_config(path).flows[0]


def run_ferry(flow: Flow, *, since: datetime | None = None, until: datetime | None = None) -> None:
    """One whole run; with `since`, a backfill."""
    request = RunRequest(flow.name, f"run-{secrets.token_hex(4)}", until=until, since=since, backfill=since is not None)
    report = copied(flow, request, lambda run: run.copy(InlineLaneRunner(), lambda _: None))
    assert not report.failed, report.failed


def write_checkpoints(flow: Flow) -> None:
    """As at the end of a run of Ferry."""
    outcome = carry_out(flow, SyncName.CHECKPOINTS, on_request=True)
    assert not outcome.failed, outcome.failed


def read_checkpoints(cluster: SandboxCluster) -> Positions:
    """By group, remote topic and partition the downstream offset, as MirrorClient reads it: read_uncommitted, the last record of a key."""
    with closing(Reader(cluster, "read_uncommitted")) as reader:
        found = (Checkpoint.decode(key, value) for _, key, value in reader.read(CHECKPOINTS))
        return {(entry.group, entry.topic, entry.partition): entry.downstream_offset for entry in found}


def wait_for_checkpoints(cluster: SandboxCluster, check: Callable[[], None], quiet: float = QUIET_SECONDS) -> None:
    """Until nothing was written into MM2's checkpoints topic for `quiet` seconds."""
    with closing(Reader(cluster, "read_uncommitted")) as reader:
        began = changed = time.monotonic()
        end = -1
        while time.monotonic() < changed + quiet:
            check()
            now = reader.end(CHECKPOINTS)
            if now != end:
                end, changed = now, time.monotonic()
            if time.monotonic() > began + SETTLING_SECONDS:
                raise TimeoutError("MirrorMaker 2 writes checkpoints all the time")
            time.sleep(0.3)
