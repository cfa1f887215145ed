"""`python -m benchmarks.quiet`: what a run costs that follows and has nothing, or next to nothing, to copy.

First nothing arrives in any of 1,000 partitions, then one record a second in each of 100 of them. Prints a Markdown table: CPU of driver
and workers as a share of one core, and requests a second to each broker. Heartbeats and syncs are included, at their default intervals.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from confluent_kafka import Producer
from tools.kafka.properties_file import write_properties

from benchmarks import ferry_side
from benchmarks.flow import Flow
from benchmarks.process_tree import ProcessTree
from benchmarks.proxied import ProxiedClusters, proxied_clusters
from benchmarks.run import DOCS, WORK
from benchmarks.table import put_between_markers
from benchmarks.topics import Topics

PARTITIONS, BUSY = 1_000, 100
# The run creates its topics, and its syncs do what they do at the beginning.
START_SECONDS = 90.0
HEAD = "| | CPU, % of a core | requests/s, source | requests/s, target |"


def main(arguments: list[str] | None = None) -> int:
    """0 when the run still follows at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quiet", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="of each row (default %(default)g)")
    parser.add_argument("--master", default=ferry_side.MASTER)
    parser.add_argument("--docs", action="store_true", help=f"put the table into {DOCS.name}")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    directory, machine_load = WORK / f"quiet-{time.time_ns()}", os.getloadavg()[0]
    with proxied_clusters(directory) as both, _topic(both) as topic:
        flow = Flow.fresh(both.clusters("source", "target"), (topic,), PARTITIONS)
        config = directory / "ferry.properties"
        write_properties(ferry_side.properties(flow), config)
        command = [str(ferry_side.HERE), "run", str(config), "--flow", flow.name, "--master", options.master, "--follow", ferry_side.FOLLOW]
        tree = ProcessTree(command, directory / "ferry.log")
        try:
            time.sleep(START_SECONDS)
            rows = [_row(f"{PARTITIONS:,} partitions, nothing arrives", both, tree, topic, options.seconds, records=0)]
            rows.append(_row(f"one record a second in each of {BUSY} partitions", both, tree, topic, options.seconds, records=BUSY))
            follows = tree.running
        finally:
            tree.finish()
    shutil.rmtree(directory, ignore_errors=True)
    caption = (
        f"{datetime.now(UTC).date()}, {options.master}, {options.seconds:g} s each; {os.cpu_count()} cores, load {machine_load:.1f} before."
    )
    text = "\n".join((caption, "", HEAD, "|---|---|---|---|", *rows, ""))
    print(text, flush=True)
    if options.docs:
        put_between_markers(DOCS, "quiet", text)
    return 0 if follows else 1


@contextmanager
def _topic(both: ProxiedClusters) -> Iterator[str]:
    name = f"quiet-{time.time_ns()}"
    Topics(both.source.cluster.bootstrap).create([name], PARTITIONS, {})
    yield name


def _row(what: str, both: ProxiedClusters, tree: ProcessTree, topic: str, seconds: float, *, records: int) -> str:
    """Measure for so many seconds, with so many records in each of them."""
    producer = Producer({"bootstrap.servers": both.source.cluster.bootstrap, "acks": "all", "linger.ms": 5})
    cpu, asked, began = tree.cost().cpu_seconds, _asked(both), time.monotonic()
    while time.monotonic() - began < seconds:
        for partition in range(records):
            producer.produce(topic, b"x" * 100, partition=partition)
        producer.flush(10)
        time.sleep(1.0)
    passed = time.monotonic() - began
    share = (tree.cost().cpu_seconds - cpu) / passed
    source, target = ((now - before) / passed for now, before in zip(_asked(both), asked, strict=True))
    return f"| {what} | {share:.1%} | {source:.1f} | {target:.1f} |"


def _asked(both: ProxiedClusters) -> tuple[int, int]:
    return both.source.proxy.seen.total(), both.target.proxy.seen.total()


if __name__ == "__main__":
    sys.exit(main())
