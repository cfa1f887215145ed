"""What is done to a topic and to who copies it. Each situation gets a fresh topic and a copier, and says in words what became of it."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.kafka.topics import delete_topics
from tools.proxy.rules import Link

from benchmarks.proxied import ProxiedClusters
from benchmarks.spark_connector.copiers import Copier
from benchmarks.spark_connector.findings import Findings, findings
from benchmarks.spark_connector.job import HICCUP
from benchmarks.topics import Ends, Topics

PARTITIONS = 2
# 2020-01-01, so that no copier gives a record the same time by chance.
OLD = 1_577_836_800_000
RECORDS = 150_000
DELAYS = 500
KEPT = {"retention.ms": "-1"}
ONE_WAY_SECONDS = 0.025


@dataclass
class Stage:
    """Both clusters, the copier of one situation, and the directory of its files."""

    both: ProxiedClusters
    copier: Copier
    directory: Path

    @property
    def source(self) -> str:
        return self.both.source.cluster.bootstrap

    @property
    def target(self) -> str:
        return self.both.target.cluster.bootstrap

    def write(self, values: Iterator[bytes] | list[bytes], partition: int | None = None) -> None:
        """Records of 100 bytes or more, without a key, spread over all partitions unless one is named."""
        producer = Producer({"bootstrap.servers": self.source, "linger.ms": 5, "acks": "all", "queue.buffering.max.messages": 1_000_000})
        for number, value in enumerate(values):
            place = number % PARTITIONS if partition is None else partition
            producer.produce(self.copier.topic, value.ljust(100, b"."), partition=place, timestamp=OLD + number, headers=[("h", b"1")])
        producer.flush()

    def copied(self) -> int:
        """Offsets of the remote topic, whether committed or not."""
        with Ends(self.target, [(self.copier.remote, number) for number in range(PARTITIONS)], committed=False) as ends:
            return sum(ends.read().values())

    @property
    def found(self) -> Findings:
        return findings(self.source, self.copier.topic, self.target, self.copier.remote)


def named(count: int, prefix: bytes = b"r") -> Iterator[bytes]:
    return (b"%s%08d" % (prefix, number) for number in range(count))


def killed(stage: Stage) -> str:
    stage.write(named(RECORDS))
    before = stage.copied()
    died = stage.copier.run_killed(lambda: stage.copied() - before > 20_000)
    code = stage.copier.run()
    return f"{stage.found}" + ("" if died and not code else f" (killed: {died}, then exit {code})")


def failed_task(stage: Stage) -> str:
    """Of Spark's job one task raises an error; of Ferry's one worker process is killed. Spark tries both again."""
    values = list(named(2 * RECORDS))
    values[RECORDS] = HICCUP
    stage.write(values)
    process, killed_one = stage.copier.start(), False
    while process.poll() is None:
        workers = [child for child in _living(process.pid) if "ferry.spark.worker_daemon" in _command(child)]
        if len(workers) > 1 and stage.copied() > 0:  # the daemon and what it has forked
            max(workers, key=lambda worker: worker.create_time()).kill()
            killed_one = True
            break
        time.sleep(0.01)
    code, failed = process.wait(), killed_one or (stage.directory / "hiccup").exists()
    return f"exit {code}; {stage.found}" + ("" if failed else " (none failed)")


def _living(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _command(process: psutil.Process) -> list[str]:
    try:
        found: list[str] = process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []
    return found


def plain(stage: Stage) -> str:
    stage.write(named(1_000))
    stage.copier.run()
    return stage.found.fields


def one_partition(stage: Stage) -> str:
    stage.write(named(100_000), 1)
    stage.copier.run()
    return str(stage.found)


def transactions(stage: Stage) -> str:
    """100 records are committed, 100 aborted; 100 of a transaction that stays open are the last ones."""
    for kind in ("committed", "aborted", "open"):
        producer = Producer({"bootstrap.servers": stage.source, "transactional.id": f"{stage.copier.remote}-{kind}"})
        producer.init_transactions()
        producer.begin_transaction()
        for value in named(100, kind.encode()):
            producer.produce(stage.copier.topic, value.ljust(100, b"."), partition=0)
        producer.flush()
        if kind == "committed":
            producer.commit_transaction()
        if kind == "aborted":
            producer.abort_transaction()
    stage.copier.run()
    return str(stage.found)


def expired(stage: Stage) -> str:
    """100 records are copied, the source deletes the next 50 uncopied, 50 are left."""
    stage.write(named(100), 0)
    stage.copier.run()
    stage.write(named(100, b"s"), 0)
    client = AdminClient({"bootstrap.servers": stage.source})
    for future in client.delete_records([TopicPartition(stage.copier.topic, 0, 150)]).values():
        future.result(60)
    code = stage.copier.run()
    return f"exit {code}; {stage.found.copied - 100} of the 50 that are left copied, 50 lost"


def created_again(stage: Stage) -> str:
    """100 records are copied; the topic is deleted and created again with 150 new ones."""
    stage.write(named(100), 0)
    stage.copier.run()
    delete_topics({"bootstrap.servers": stage.source}, stage.copier.topic)
    Topics(stage.source).create([stage.copier.topic], PARTITIONS, KEPT)
    stage.write(named(150, b"new"), 0)
    code = stage.copier.run()
    found = stage.found
    return f"exit {code}; {found.records - found.lost} of the 150 new records copied"


def far(stage: Stage) -> str:
    """The copier's line to the source takes 50 ms there and back. Its start does not count."""
    stage.write(named(RECORDS), 0)
    stage.both.source.proxy.link = Link(delay=ONE_WAY_SECONDS)
    process = stage.copier.start()
    first = last = (time.monotonic(), 0)
    try:
        while process.poll() is None:
            now = (time.monotonic(), stage.copied())
            if now[1] > last[1]:
                first, last = first if first[1] else now, now
            time.sleep(0.02)
    finally:
        stage.both.source.proxy.link = Link()
        process.wait()
    seconds = last[0] - first[0]
    return f"{(last[1] - first[1]) / seconds:,.0f} records/s" if seconds > 0 else f"all at once ({stage.found})"


def delay(stage: Stage) -> str:
    """20 records a second, read on the other side by a consumer that waits for them. The start does not count."""
    process = stage.copier.start()
    consumer = Consumer({"bootstrap.servers": stage.target, "group.id": "delay", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 5})
    producer = Producer({"bootstrap.servers": stage.source, "linger.ms": 0, "acks": "all"})
    seconds = list[float]()
    began = time.monotonic()
    try:
        while stage.copied() == 0:
            if process.poll() is not None:
                raise RuntimeError(f"the copier ended: see {stage.copier.log}")
            producer.produce(stage.copier.topic, b"%.6f" % time.time(), partition=0)
            producer.flush()
            time.sleep(0.5)
        consumer.assign([TopicPartition(stage.copier.remote, 0, OFFSET_END)])
        while len(seconds) < DELAYS and time.monotonic() - began < 300:
            producer.produce(stage.copier.topic, b"%.6f" % time.time(), partition=0)
            producer.flush()
            message = consumer.poll(0.05)
            while message is not None and message.error() is None:
                seconds.append(time.time() - float(message.value()))
                message = consumer.poll(0.0)
    finally:
        consumer.close()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    median, most = statistics.median(seconds), sorted(seconds)[int(len(seconds) * 0.99)]
    return f"median {median * 1000:,.0f} ms, 99 % below {most * 1000:,.0f} ms"


@dataclass(frozen=True)
class Situation:
    """A row. `options`, `columns`, `hiccup`: of Spark's job. `far`: the source is reached through the proxy. `follows`: see the copiers."""

    title: str
    play: Callable[[Stage], str]
    options: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    hiccup: bool = False
    far: bool = False
    follows: bool = False


ALL = ("headers", "partition")
HEADERS = {"includeHeaders": "true"}
COMMITTED = {"kafka.isolation.level": "read_committed"}
SITUATIONS = (
    Situation("`kill -9` while it writes; started again", killed, HEADERS, ALL),
    Situation("one task fails once, and Spark tries it again", failed_task, HEADERS, ALL, hiccup=True),
    Situation("a copy as in Spark's guide: key and value", plain),
    Situation("the same with `includeHeaders` and the column `partition`", plain, HEADERS, ALL),
    Situation("`minPartitions=4`, one partition with records", one_partition, {**HEADERS, "minPartitions": "4"}, ALL),
    Situation("100 records committed, 100 aborted, 100 in an open transaction", transactions, HEADERS, ALL),
    Situation("the same with `kafka.isolation.level=read_committed`", transactions, {**HEADERS, **COMMITTED}, ALL),
    Situation("the source deletes records before they are copied", expired, HEADERS, ALL),
    Situation("the same with `failOnDataLoss=false`", expired, {**HEADERS, "failOnDataLoss": "false"}, ALL),
    Situation("the source topic is deleted and created again", created_again, HEADERS, ALL),
    Situation("the same with `failOnDataLoss=false`", created_again, {**HEADERS, "failOnDataLoss": "false"}, ALL),
    Situation("one partition, 50 ms away", far, HEADERS, ALL, far=True),
    Situation("delay of a record: real-time mode; `ferry run --follow`", delay, HEADERS, ALL, follows=True),
)
