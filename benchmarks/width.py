"""`python -m benchmarks.width`: one backlog copied with 1, 2 and 4 Spark tasks, on each kind of Spark master. Prints a Markdown table.

Local threads, a standalone cluster of three workers, the same with dynamic allocation, and YARN; all of them, and both brokers, on this
machine. The brokers' data is in memory, so no disk limits the copy. Once the cores that are busy
while Ferry copies reach the cores of the machine, more tasks cannot copy faster here. `--docs` puts the table into docs/scale.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import psutil
from tools.kafka import SandboxCluster
from tools.kafka.properties_file import write_properties
from tools.spark.site import site
from tools.spark.standalone import standalone
from tools.spark.yarn import yarn

from benchmarks import ferry_side
from benchmarks.flow import Clusters, Flow
from benchmarks.measure import measure
from benchmarks.run import BROKER_JAVA
from benchmarks.scale.__main__ import DOCS
from benchmarks.shapes import Shape
from benchmarks.sources import source_topics
from benchmarks.table import put_between_markers

SHAPE = Shape("width", "1 KB, lz4, 110-record batches", 1_000, "lz4", 110, 2_000.0, 1, 8)
TASKS = (1, 2, 4)
WORKERS, CORES = 3, 2
MEMORY = Path("/dev/shm")  # noqa: S108 - memory, not a place for secrets; the directory below it is a new one
EXECUTOR = {"spark.executor.memory": "480m", "spark.executor.cores": "1"}
HEAD = "| Spark | tasks | MB/s | s to the last record | CPU s of both brokers | CPU s of all else | cores busy while copying |"
LOOK_SECONDS = 0.2
# Before anything counts: new brokers need three times the CPU for a copy until their code is compiled.
WARM_COPIES = 3


@dataclass(frozen=True)
class Spark:
    """A kind of master. `settings`: Spark's, by number of tasks; `environment`: of the command."""

    name: str
    master: str
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def of(self, tasks: int) -> Spark:
        """With the number of tasks put in."""
        put = lambda text: text.replace("{tasks}", str(tasks))  # noqa: E731 - a name for what is done four times
        return replace(self, master=put(self.master), settings={name: put(value) for name, value in self.settings.items()})


def main(arguments: list[str] | None = None) -> int:
    """0 when every copy arrived."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.width", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=SHAPE.megabytes)
    parser.add_argument("--only", action="append", help="a kind of master, by its first word; may be repeated")
    parser.add_argument("--docs", action="store_true", help=f"put the table into {DOCS.name}")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    shape = SHAPE.of_size(options.megabytes)
    load = os.getloadavg()[0]
    rows: list[str] = []
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="ferry-width-") as work, ExitStack() as running:
        directory = Path(work)
        source, target = (
            running.enter_context(SandboxCluster.start(directory / name, name, java_options=BROKER_JAVA)) for name in ("source", "target")
        )
        clusters = Clusters(source.bootstrap, target.bootstrap)
        names = running.enter_context(source_topics(clusters, shape))
        for _ in range(WARM_COPIES):
            flow = Flow.fresh(clusters, names, shape.partitions)
            measure(ferry_side.job(flow, directory), shape.records)
            flow.remove()
        for spark in _masters(directory, running, options.only):
            for tasks in TASKS:
                flow = Flow.fresh(clusters, names, shape.partitions)
                rows.append(_row(spark.of(tasks), tasks, shape, flow, (source, target)))
                print(rows[-1], flush=True)
                flow.remove()
    caption = (
        f"{datetime.now(UTC).date()}, {shape.title}, {shape.gigabytes:.1f} GB in {shape.partitions} partitions; {os.cpu_count()} cores"
    )
    text = "\n".join((f"{caption}, load {load:.1f} before.", "", HEAD, "| --- | --- | --- | --- | --- | --- | --- |", *rows, ""))
    print(text, flush=True)
    if options.docs:
        put_between_markers(DOCS, "width", text)
    return 0


def _masters(directory: Path, running: ExitStack, only: list[str] | None) -> Iterator[Spark]:
    """Each kind, running while it is used."""
    dynamic = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "{tasks}"}
    wanted = lambda name: only is None or name in only  # noqa: E731 - short for a condition
    if wanted("local"):
        yield Spark("local", "local[{tasks}]")
    if wanted("standalone") or wanted("dynamic"):
        with _workers(directory / "standalone") as master:
            if wanted("standalone"):
                yield Spark(f"standalone, {WORKERS} workers", master, {**EXECUTOR, "spark.cores.max": "{tasks}"})
            if wanted("dynamic"):
                yield Spark("standalone, dynamic allocation", master, {**EXECUTOR, **dynamic})
    if wanted("yarn"):
        configuration = running.enter_context(yarn(directory / "yarn", memory_mib=8_192, cores=8))
        settings = {**EXECUTOR, "spark.yarn.am.memory": "384m", "spark.executor.instances": "{tasks}"}
        yield Spark("YARN", "yarn", settings, {"HADOOP_CONF_DIR": str(configuration)})


@contextmanager
def _workers(directory: Path) -> Iterator[str]:
    directory.mkdir()
    with standalone(directory, workers=0) as cluster:
        for _ in range(WORKERS):
            cluster.add_worker(cores=CORES)
        yield cluster.master


def _row(spark: Spark, tasks: int, shape: Shape, flow: Flow, brokers: tuple[SandboxCluster, SandboxCluster]) -> str:
    directory = brokers[0].directory.parent
    job = ferry_side.job(flow, directory, spark.master)
    write_properties({**ferry_side.properties(flow), "tasks.max": str(tasks)}, directory / f"ferry-{flow.mark}.properties")
    conf = site(directory / flow.mark, spark.settings)
    processes = [psutil.Process(broker.pid) for broker in brokers]
    before, began = sum(map(_cpu, processes)), time.perf_counter()
    with Machine() as machine:
        sample = measure(replace(job, environment={**os.environ, **conf, **spark.environment}), shape.records)
    by_brokers = sum(map(_cpu, processes)) - before
    copying = (began + sample.first_seconds, began + sample.caught_up_seconds)
    speed = sample.records * shape.record_bytes / (copying[1] - copying[0]) / 1e6
    figures = (f"{speed:.0f}", f"{sample.caught_up_seconds:.1f}", f"{by_brokers:.1f}", f"{machine.cpu_seconds - by_brokers:.1f}")
    return f"| {spark.name} | {tasks} | {' | '.join(figures)} | {machine.cores(*copying):.1f} |"


class Machine:
    """A context manager: CPU seconds of the whole machine, for executors are no descendants of the command that is measured."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="machine", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    @property
    def cpu_seconds(self) -> float:
        """From its beginning to its end."""
        return self._seen[-1][1] - self._seen[0][1]

    def cores(self, begin: float, end: float) -> float:
        """How many cores were busy on average between two moments of time.perf_counter, to the nearest looks outside them."""
        first = max((seen for seen in self._seen if seen[0] <= begin), default=self._seen[0])
        last = min((seen for seen in self._seen if seen[0] >= end), default=self._seen[-1])
        return (last[1] - first[1]) / (last[0] - first[0])

    def _look(self) -> None:
        times = psutil.cpu_times()
        self._seen.append((time.perf_counter(), sum(times) - times.idle - times.iowait - times.guest - times.guest_nice))

    def _look_on(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    sys.exit(main())
