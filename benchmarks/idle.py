"""`python -m benchmarks.idle`: how long a run takes that has next to nothing to copy, and how long a run goes on after its last record.

Three rows: nothing to do over 1,000 partitions; one heartbeat to copy; from the last record of 400 MB to the end of the command. With
`--beside DIRECTORY` the `ferry` of another checkout does the same on the same brokers, in turn with this one, so that both meet the same
machine. Seconds are wall time of the whole command, its start included; the third row's are those after the last change of the remote
topics' ends.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.kafka.properties_file import write_properties

from benchmarks.ferry_side import HERE, environment, of_checkout, properties
from benchmarks.flow import Clusters, Flow
from benchmarks.measure import Job, measure
from benchmarks.rounds import rotated
from benchmarks.run import running_clusters
from benchmarks.shapes import Shape
from benchmarks.sources import source_topics

ROUNDS = 5
# A run that takes longer hangs.
RUN_SECONDS = 120.0
WIDE = Shape("wide", "1,000 partitions", 100, "none", 1, 0.1, 1, 1_000)
NARROW = Shape("narrow", "2 partitions", 100, "none", 1, 0.01, 1, 2)
LARGE = Shape("large", "400 MB", 1_000, "lz4", 110, 400.0, 1, 2)
NO_HEARTBEATS = {"emit.heartbeats.enabled": "false"}

Seconds = dict[str, list[float]]


@dataclass(frozen=True)
class Command:
    """One checkout's `ferry`."""

    name: str
    ferry: Path

    def run(self, config: Path, flow: Flow, master: str) -> list[str]:
        """The command line of a run."""
        return [str(self.ferry), "run", str(config), "--flow", flow.name, "--master", master, "--json"]


def main(arguments: list[str] | None = None) -> int:
    """0 when every command of every round ended well."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"commands per row (default {ROUNDS})")
    parser.add_argument("--beside", type=of_checkout, help="another checkout, with its .venv: measured in turn with this one")
    parser.add_argument("--master", default="inline", help="Spark master of the third row (default: inline, no Spark)")
    options = parser.parse_args(arguments)
    commands = [Command("here", HERE)]
    if options.beside:
        commands.append(Command("beside", options.beside))
    print(f"load {os.getloadavg()[0]:.1f}, {options.rounds} rounds, median (least to greatest) in seconds")
    with running_clusters() as (clusters, directory):
        repeated = [("nothing to do, 1,000 partitions", WIDE, NO_HEARTBEATS), ("one heartbeat", NARROW, {})]
        for title, shape, settings in repeated:
            with source_topics(clusters, shape) as names:
                found = _again_and_again(clusters, names, shape, settings, commands, directory, options.rounds)
            _print(title, found)
        with source_topics(clusters, LARGE) as names:
            found = {command.name: [] for command in commands}
            for number in range(options.rounds):
                for command in _rotated(commands, number):
                    found[command.name].append(_after_the_last_record(clusters, names, command, directory, options.master))
        _print("last record to exit, 400 MB", found)
    return 0


def _again_and_again(  # noqa: PLR0917 - what is copied, by whom, how often
    clusters: Clusters,
    names: tuple[str, ...],
    shape: Shape,
    settings: Mapping[str, str],
    commands: list[Command],
    directory: Path,
    rounds: int,
) -> Seconds:
    """Each command has a flow of its own: the first run copies all there is, the second one settles, the others count."""
    flows = {command.name: Flow.fresh(clusters, names, shape.partitions) for command in commands}
    found: Seconds = {command.name: [] for command in commands}
    for number in range(rounds + 2):
        for command in _rotated(commands, number):
            flow = flows[command.name]
            config = directory / f"{flow.mark}.properties"
            write_properties({**properties(flow), **settings}, config)
            seconds = _timed(command.run(config, flow, "inline"))
            if number >= 2:
                found[command.name].append(seconds)
    for flow in flows.values():
        flow.remove()
    return found


def _after_the_last_record(clusters: Clusters, names: tuple[str, ...], command: Command, directory: Path, master: str) -> float:
    flow = Flow.fresh(clusters, names, LARGE.partitions)
    config = directory / f"{flow.mark}.properties"
    write_properties(properties(flow), config)
    log = directory / f"{flow.mark}.log"
    job = Job(command.run(config, flow, master), log, clusters.target, flow.remote_partitions, True, environment())
    sample = measure(job, LARGE.records)
    flow.remove()
    return (sample.exit_seconds or 0.0) - sample.caught_up_seconds


def _rotated(commands: list[Command], number: int) -> list[Command]:
    order = rotated(tuple(command.name for command in commands), number)
    return sorted(commands, key=lambda command: order.index(command.name))


def _timed(line: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(line, check=True, capture_output=True, timeout=RUN_SECONDS, env=environment())
    return time.perf_counter() - began


def _print(title: str, found: Seconds) -> None:
    cells = [f"{name} {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" for name, values in found.items()]
    print(f"{title}: {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
