"""Ferry's side: `ferry run` as a user types it, Spark and its start included."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.kafka.properties_file import write_properties

from benchmarks.flow import Flow
from benchmarks.measure import Job

MASTER = "local[2]"
# Longer than any round.
FOLLOW = "1h"


def properties(flow: Flow) -> dict[str, str]:
    """The mm2.properties of a round: nothing tuned."""
    return {**flow.settings(), "ferry.internal.topics.replication.factor": "1"}


def job(flow: Flow, directory: Path, master: str = MASTER, *, follows: bool = False) -> Job:
    """A round, ready to measure. The command ends when its run is done; one that `follows` is ended when everything has arrived."""
    config = directory / f"ferry-{flow.mark}.properties"
    write_properties(properties(flow), config)
    ferry = str(Path(sys.executable).with_name("ferry"))
    command = [ferry, "run", str(config), "--flow", flow.name, "--master", master, "--json"]
    command += ["--follow", FOLLOW] if follows else []
    return Job(command, directory / f"ferry-{flow.mark}.log", flow.clusters.target, flow.remote_partitions, ends=not follows)
