"""Ferry's side: `ferry run` as a user types it, Spark and its start included."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tools.kafka.properties_file import write_properties

from benchmarks.flow import Flow
from benchmarks.measure import Job

MASTER = "local[2]"
HERE = Path(sys.executable).with_name("ferry")
# Longer than any round.
FOLLOW = "1h"


def properties(flow: Flow) -> dict[str, str]:
    """The mm2.properties of a round: nothing tuned."""
    return {**flow.settings(), "ferry.internal.topics.replication.factor": "1"}


def of_checkout(directory: str) -> Path:
    """The `ferry` that `make setup` installed in a checkout. ArgumentTypeError where it did not."""
    ferry = Path(directory).resolve() / ".venv" / "bin" / "ferry"
    if not ferry.is_file():
        raise argparse.ArgumentTypeError(f"{ferry} is missing: run `make setup` in {directory}")
    return ferry


def environment() -> dict[str, str]:
    """For a `ferry` of any checkout: with this process's PYTHONPATH it would run the code of this one."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def job(flow: Flow, directory: Path, master: str = MASTER, *, follows: bool = False, ferry: Path = HERE) -> Job:
    """A round, ready to measure. The command ends when its run is done; one that `follows` is ended when everything has arrived."""
    config = directory / f"ferry-{flow.mark}.properties"
    write_properties(properties(flow), config)
    command = [str(ferry), "run", str(config), "--flow", flow.name, "--master", master, "--json"]
    command += ["--follow", FOLLOW] if follows else []
    return Job(command, directory / f"ferry-{flow.mark}.log", flow.clusters.target, flow.remote_partitions, not follows, environment())
