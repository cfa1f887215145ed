"""`python -m benchmarks.scale.tail`: one partition has ten times the bytes of each of the others; 8 lanes, and 2 and 4 Spark tasks.

A rate limit makes the best possible time known: each task has its part of the rate. No split of the lanes ends before all bytes have passed
at the whole rate, or before the large partition has passed through one task. Prints a Markdown table; `--docs` puts it into docs/scale.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from tools.kafka.properties_file import write_properties

from benchmarks import ferry_side
from benchmarks.flow import Clusters, Flow
from benchmarks.measure import Job, measure
from benchmarks.run import running_clusters
from benchmarks.scale.__main__ import DOCS
from benchmarks.shapes import Shape
from benchmarks.sources import source_topics
from benchmarks.table import put_between_markers

PART = 20.0
LARGE = Shape("large", "1 KB, uncompressed, 110-record batches", 1_000, "none", 110, 10 * PART, partitions=1)
SMALL = Shape("small", LARGE.title, 1_000, "none", 110, 15 * PART, partitions=15)
MEGABYTES = LARGE.megabytes + SMALL.megabytes
LANES, TASKS = 8, (2, 4)
# In MB/s, of all tasks: less than one core copies.
RATE = 25.0
HEAD = "| tasks | best possible, s | first record to last commit, s | times the best |"


def main(arguments: list[str] | None = None) -> int:
    """0 when every copy arrived."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.tail", description=__doc__)
    parser.add_argument("--docs", action="store_true", help=f"put the table into {DOCS.name}")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    load, rows = os.getloadavg()[0], list[str]()
    with running_clusters() as (clusters, directory), source_topics(clusters, LARGE) as large, source_topics(clusters, SMALL) as small:
        for tasks in TASKS:
            best = max(MEGABYTES / RATE, LARGE.megabytes / (RATE / tasks))
            seconds = _seconds(clusters, large, small, tasks, directory)
            rows.append(f"| {tasks} | {best:.1f} | {seconds:.1f} | {seconds / best:.2f} |")
            print(rows[-1], flush=True)
    what = f"{MEGABYTES:,.0f} MB in {SMALL.partitions + 1} partitions and {LANES} lanes, {RATE:g} MB/s"
    caption = f"{datetime.now(UTC).date()}, {LARGE.title}, {what}; {os.cpu_count()} cores, load {load:.1f} before."
    text = "\n".join((caption, "", HEAD, "| --- | --- | --- | --- |", *rows, ""))
    print(text, flush=True)
    if options.docs:
        put_between_markers(DOCS, "tail", text)
    return 0


def _seconds(clusters: Clusters, large: tuple[str, ...], small: tuple[str, ...], tasks: int, directory: Path) -> float:
    flow = Flow.fresh(clusters, (*large, *small), SMALL.partitions)
    config, log = directory / f"{flow.mark}.properties", directory / f"{flow.mark}.log"
    write_properties({**ferry_side.properties(flow), "ferry.lanes": str(LANES), "ferry.max.rate.mb": f"{RATE:g}"}, config)
    command = [str(ferry_side.HERE), "run", str(config), "--flow", flow.name, "--master", f"local[{tasks}]"]
    there = [(topic, number) for topic, number in flow.remote_partitions if number == 0 or not topic.endswith(large[0])]
    sample = measure(Job(command, log, clusters.target, there, ends=True), LARGE.records + SMALL.records)
    flow.remove()
    return sample.caught_up_seconds - sample.first_seconds


if __name__ == "__main__":
    sys.exit(main())
