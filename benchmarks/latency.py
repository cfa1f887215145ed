"""`python -m benchmarks.latency`: how old records are when a reader of the target gets them, under a steady load, beside MirrorMaker 2.

A producer writes to the source at a fixed rate; a read_committed consumer (librdkafka) reads the target. A record's delay is the time from
the producer's acknowledgement to the consumer. Ferry runs follow, and the next one takes over every `--handover` seconds; MirrorMaker 2
runs with exactly-once. `--commit-ms` (may be repeated) sets ferry.follow.commit.ms: then Ferry runs once for each. With `--far` the copiers
reach one of the clusters through a proxy that delays everything; producer and consumer do not. Prints a Markdown table; `--docs` puts it
into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from tools.kafka.properties_file import write_properties
from tools.proxy.rules import Link

from benchmarks import ferry_side, mm2
from benchmarks.flow import Clusters, Flow
from benchmarks.process_tree import ProcessTree
from benchmarks.proxied import proxied_clusters
from benchmarks.run import DOCS, WORK
from benchmarks.table import put_between_markers
from benchmarks.topics import Topics

# Before the load: Spark starts, and MirrorMaker 2's connectors join their group.
START_SECONDS = 60.0
# After the load. A copier that has not brought all records by then does not keep up with it.
LAST_SECONDS = 60.0
MISSING = "did not arrive in time"
HEAD = "| copier | commit ms | p50 s | p90 s | p99 s | max s | longest pause s | copier, % of a core | target broker, % of a core |"


class CopiedTwice(RuntimeError):
    """Records that arrived twice: the figures mean nothing."""


@dataclass(frozen=True)
class Load:
    """Records a second of so many bytes each, to so many partitions, for so many seconds."""

    rate: int
    size: int
    partitions: int
    seconds: float


@dataclass
class Copier:
    """What copies: `begin` starts a process, `again` is how often another one is started to take over (None: never)."""

    name: str
    commit: str
    begin: Callable[[], ProcessTree]
    again: float | None = None
    trees: list[ProcessTree] = field(default_factory=list)

    def cpu_seconds(self) -> float:
        """Of all processes so far."""
        return sum(tree.cost().cpu_seconds for tree in self.trees)


class Observed:
    """The load, and when each record was acknowledged and read."""

    def __init__(self, flow: Flow, load: Load) -> None:
        self._flow, self._load = flow, load
        self.sent: dict[int, float] = {}
        self.read: dict[int, float] = {}
        self.twice = 0
        self._reading, self._over = threading.Event(), threading.Event()

    def go(self, meanwhile: Callable[[float], None]) -> int:
        """Write for as long as the load says, and read until all has arrived, or LAST_SECONDS: how many records are missing then.

        `meanwhile` is called every moment. CopiedTwice.
        """
        reader = threading.Thread(target=self._read, name="reader", daemon=True)
        reader.start()
        self._reading.wait()
        writer = threading.Thread(target=self._write, name="writer", daemon=True)
        writer.start()
        began = time.monotonic()
        while writer.is_alive():
            meanwhile(time.monotonic() - began)
            time.sleep(0.1)
        deadline = time.monotonic() + LAST_SECONDS
        while len(self.read) < len(self.sent) and time.monotonic() < deadline:
            time.sleep(0.1)
        self._over.set()
        reader.join()
        if self.twice:
            raise CopiedTwice(f"{self.twice} of {len(self.sent)} records")
        return len(self.sent) - len(self.read)

    def delays(self) -> list[float]:
        """In order."""
        return sorted(moment - self.sent[number] for number, moment in self.read.items())

    def longest_pause(self) -> float:
        """Between two records on the target."""
        moments = sorted(self.read.values())
        return max((after - before for before, after in pairwise(moments)), default=math.nan)

    def _write(self) -> None:
        producer = Producer({"bootstrap.servers": self._flow.clusters.source, "acks": "all", "enable.idempotence": True, "linger.ms": 5})
        (topic,), load = self._flow.topics, self._load
        padding = b"x" * load.size

        def acknowledged(_: object, message: object) -> None:
            self.sent[int(message.value()[:12])] = time.time()  # type: ignore[attr-defined]

        began, number = time.monotonic(), 0
        while (passed := time.monotonic() - began) < load.seconds:
            while number < passed * load.rate:
                value = b"%012d" % number + padding[12:]
                producer.produce(topic, value, partition=number % load.partitions, on_delivery=acknowledged)
                number += 1
            producer.poll(0.002)
        producer.flush(LAST_SECONDS)

    def _read(self) -> None:
        settings = {"bootstrap.servers": self._flow.clusters.target, "group.id": "latency", "isolation.level": "read_committed"}
        consumer = Consumer({**settings, "fetch.wait.max.ms": 50, "enable.auto.commit": False})
        consumer.assign([TopicPartition(*place, 0) for place in self._flow.remote_partitions])
        self._reading.set()
        while not self._over.is_set():
            messages = consumer.consume(1_000, 0.02)
            now = time.time()
            for message in messages:
                if message.error() is None:
                    number = int((message.value() or b"")[:12])
                    self.twice += number in self.read
                    self.read[number] = now
        consumer.close()


def main(arguments: list[str] | None = None) -> int:
    """0, and a table; CopiedTwice ends it."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    load = Load(options.rate, options.bytes, options.partitions, options.minutes * 60)
    machine_load, rows = os.getloadavg()[0], list[str]()
    directory = WORK / f"latency-{time.time_ns()}"
    with proxied_clusters(directory) as both:
        near, seen, target_pid = both.clusters(), both.clusters(options.far), both.target.cluster.pid
        if options.far:
            getattr(both, options.far).proxy.link = Link(delay=options.round_trip_ms / 2_000)
        for commit in options.commit_ms or [None]:
            with _flow(near, load) as flow:
                rows.append(_measure(_ferry(replace(flow, clusters=seen), directory, options, commit), flow, load, target_pid))
        if not options.without_mm2:
            with _flow(near, load) as flow:
                job = mm2.job(replace(flow, clusters=seen), "none", directory, tuned=False)
                copier = Copier("MirrorMaker 2, exactly-once", "", lambda: ProcessTree(job.command, job.log))
                rows.append(_measure(copier, flow, load, target_pid))
    if any(MISSING in row for row in rows):
        print(f"logs: {directory}", flush=True)
    else:
        shutil.rmtree(directory, ignore_errors=True)
    what = f"{load.rate:,} records/s of {load.size:,} B over {load.partitions} partitions, {options.minutes:g} minutes each"
    runs = f"Ferry's runs with {options.master}, hand-over every {options.handover:g} s"
    runs += f"; the {options.far} is {options.round_trip_ms:g} ms away" if options.far else ""
    caption = f"{datetime.now(UTC).date()}, {what}; {runs}; {os.cpu_count()} cores, load {machine_load:.1f} before."
    text = "\n".join((caption, "", HEAD, "|---|---|---|---|---|---|---|---|---|", *rows, ""))
    print(text, flush=True)
    if options.docs:
        put_between_markers(DOCS, "latency", text)
    return 0


@contextmanager
def _flow(clusters: Clusters, load: Load) -> Iterator[Flow]:
    topics = Topics(clusters.source)
    name = f"latency-{time.time_ns()}"
    topics.create([name], load.partitions, {})
    flow = Flow.fresh(clusters, (name,), load.partitions)
    try:
        yield flow
    finally:
        flow.remove()
        topics.delete([name])


def _ferry(flow: Flow, directory: Path, options: argparse.Namespace, commit: int | None) -> Copier:
    config = directory / f"ferry-{flow.mark}.properties"
    given = {} if commit is None else {"ferry.follow.commit.ms": str(commit)}
    write_properties({**ferry_side.properties(flow), **given}, config)
    seconds = round(START_SECONDS + options.minutes * 60 + LAST_SECONDS)
    command = [str(ferry_side.HERE), "run", str(config), "--flow", flow.name, "--master", options.master, "--follow", f"{seconds}s"]
    logs = (directory / f"ferry-{flow.mark}-{number}.log" for number in range(1_000))
    return Copier("Ferry", "chosen" if commit is None else str(commit), lambda: ProcessTree(command, next(logs)), options.handover or None)


def _measure(copier: Copier, flow: Flow, load: Load, target_pid: int) -> str:
    observed, broker = Observed(flow, load), psutil.Process(target_pid)
    copier.trees.append(copier.begin())
    try:
        time.sleep(START_SECONDS)
        cpu, broker_cpu, began = copier.cpu_seconds(), _cpu(broker), time.monotonic()

        def meanwhile(passed: float) -> None:
            if copier.again is not None and passed > copier.again * len(copier.trees):
                copier.trees.append(copier.begin())

        missing = observed.go(meanwhile)
        seconds = time.monotonic() - began
        shares = [(copier.cpu_seconds() - cpu) / seconds, (_cpu(broker) - broker_cpu) / seconds]
    finally:
        for tree in copier.trees:
            tree.finish()
    delays = observed.delays() or [math.nan]
    figures = [delays[min(len(delays) - 1, int(len(delays) * part))] for part in (0.5, 0.9, 0.99, 1.0)]
    cells = (*(f"{one:.2f}" for one in (*figures, observed.longest_pause())), *(f"{share:.0%}" for share in shares))
    name = f"{copier.name}; {missing:,} of {len(observed.sent):,} records {MISSING}" if missing else copier.name
    row = f"| {name} | {copier.commit} | {' | '.join(cells)} |"
    print(row, flush=True)
    return row


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--rate", type=int, default=2_000, help="records a second (default %(default)s)")
    parser.add_argument("--bytes", type=int, default=1_000, help="of a record (default %(default)s)")
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--handover", type=float, default=120.0, help="seconds between two runs of Ferry; 0: one run")
    parser.add_argument("--commit-ms", type=int, action="append", help="ferry.follow.commit.ms (default: not set)")
    parser.add_argument("--far", choices=("source", "target"), help="this cluster is far away from the copiers")
    parser.add_argument("--round-trip-ms", type=float, default=100.0, help="how far (default %(default)g)")
    parser.add_argument("--master", default=ferry_side.MASTER)
    parser.add_argument("--without-mm2", action="store_true")
    parser.add_argument("--docs", action="store_true", help=f"put the table into {DOCS.name}")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
