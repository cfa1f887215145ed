"""A series of kills: real runs of `ferry run` on real brokers, struck at random moments, and a reader that watches all along.

Every round produces records (plain and transactional, some aborted), starts a run in its own process tree and strikes while lanes work.
At the end the flow is run until nothing is left, then the target must equal the source record by record, and the watching read_committed
reader must have seen every record once, in order. Everything random comes from the seed.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.protocol.admin import ListTransactionsRequest

from ferry.clusters.connections import ClusterConnection, EventLoop
from ferry.config import ClientRole, load_config
from ferry.sandbox import SandboxCluster, compare_topics, read_all

TOPICS = {"plain": "none", "packed": "lz4", "settled": "zstd"}
PARTITIONS = 3
RECORDS_A_ROUND = 90_000
VALUE_BYTES = 1_000
FLOW = "A->B"
CONFIG = """\
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}
A->B.enabled = true
replication.factor = 1
A->B.topics = plain, packed, settled
A->B.ferry.transaction.mb = 8
A->B.ferry.transaction.seconds = 5
A->B.tasks.max = 2
"""
STRIKES = ("worker", "jvm", "tree", "target broker", "source broker", "stop worker", "stop jvm", "stop target broker", "second run")
# A run that neither ends nor makes headway is a finding.
RUN_SECONDS = 240.0
# Until the lanes of a run are at work: Spark's start on a loaded machine.
START_SECONDS = 90.0
FIRST_TRANSACTION_SECONDS = 15.0
# The share of strikes that wait for an open transaction; the others hit what lies between.
AIMED = 0.85
WATCH_SECONDS = 60.0
OPEN_STATE = "Ongoing"


@dataclass
class Outcome:
    """What a series found. `inside` counts strikes during an open transaction of the flow."""

    seed: int
    rounds: int
    strikes: Counter[str] = field(default_factory=Counter)
    inside: int = 0
    records: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing was lost, doubled, reordered or altered."""
        return not self.problems

    def lines(self) -> list[str]:
        """For the log."""
        struck = ", ".join(f"{name} {count}" for name, count in sorted(self.strikes.items()))
        head = (
            f"seed {self.seed}: {self.rounds} rounds, {self.inside} struck inside an open transaction ({struck}); {self.records:,} records"
        )
        return [head, *(f"  PROBLEM {problem}" for problem in self.problems), "  equal, once, in order" if self.clean else "  NOT CLEAN"]


class Watcher(threading.Thread):
    """A read_committed reader of the remote topics that runs all along."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="watcher", daemon=True)
        self.seen: dict[tuple[str, int], list[int]] = {}
        self._address = bootstrap
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Read until told to stop."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": "watcher",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(f"A.{topic}", number, 0) for topic in TOPICS for number in range(PARTITIONS)])
        while not self._stop_asked.is_set():
            for message in consumer.consume(2_000, 0.2):
                if message.error() is None:
                    self.seen.setdefault((message.topic(), message.partition()), []).append(number_of(message.value()))
        consumer.close()

    def finish(self, wanted: int) -> None:
        """Stop once `wanted` records were seen, or no more come."""
        deadline = time.monotonic() + WATCH_SECONDS
        while sum(map(len, self.seen.values())) < wanted and time.monotonic() < deadline:
            time.sleep(0.2)
        self._stop_asked.set()
        self.join()


class Series:
    """One series over two clusters of its own."""

    def __init__(self, directory: Path, seed: int, say: Callable[[str], None]) -> None:
        self._random = random.Random(seed)
        self._say = say
        self._source = SandboxCluster.start(directory / "A", "A")
        self._target = SandboxCluster.start(directory / "B", "B")
        self._config = directory / "mm2.properties"
        self._config.write_text(CONFIG.format(source=self._source.bootstrap, target=self._target.bootstrap))
        admin = AdminClient({"bootstrap.servers": self._source.bootstrap})
        for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in TOPICS]).values():
            future.result(30)
        self._number = 0
        self.outcome = Outcome(seed, 0)

    def close(self) -> None:
        """Stop both clusters."""
        self._source.stop()
        self._target.stop()

    def prepare(self) -> Watcher:
        """Remote topics exist before the watcher starts."""
        self._produce()
        self._run_to_the_end()
        watcher = Watcher(self._target.bootstrap)
        watcher.start()
        return watcher

    def round(self, number: int) -> None:
        """Produce, run, strike."""
        self._produce()
        strike = self._random.choice(STRIKES)
        process = self._start()
        struck = False
        if self._at_work(process):
            self._await_open_transaction(process)
            time.sleep(self._random.choice([0.0, self._random.uniform(0.0, 0.2), self._random.uniform(0.0, 1.0)]))
            tree = _tree(process.pid)
            if self._random.random() < AIMED:
                self._await_open_transaction(process)
            inside = self._open_transactions()
            struck = process.poll() is None
            self.outcome.inside += bool(inside and struck)
            self._say(f"round {number}: {strike}{'' if struck else ' (too late)'}, {inside} transactions open")
            self._strike(strike, tree)
        else:
            self._say(f"round {number}: the run ended before its lanes were at work")
        self.outcome.strikes[strike if struck else "too late"] += 1
        self.outcome.rounds += 1
        self._wait(process)

    def finish(self, watcher: Watcher) -> Outcome:
        """Run until nothing is left, then compare."""
        for _ in range(4):
            if self._run_to_the_end():
                break
        else:
            self.outcome.problems.append("no clean run after the series")
        pairs = {topic: f"A.{topic}" for topic in TOPICS}
        found = compare_topics(self._source.bootstrap, self._target.bootstrap, pairs)
        self.outcome.records = found.records
        self.outcome.problems += [f"{difference}" for difference in found.differences[:5]]
        watcher.finish(found.records)
        for topic in TOPICS:
            for number, partition in enumerate(read_all(self._source.bootstrap, topic)):
                wanted = [number_of(record.value) for record in partition]
                seen = watcher.seen.get((f"A.{topic}", number), [])
                if seen != wanted:
                    repeated = len(seen) - len(set(seen))
                    self.outcome.problems.append(
                        f"the watcher saw {len(seen)} of {len(wanted)} records of A.{topic}-{number}, {repeated} twice"
                    )
        return self.outcome

    def _produce(self) -> None:
        filler = "x" * VALUE_BYTES
        for topic, codec in TOPICS.items():
            settings = {
                "bootstrap.servers": self._source.bootstrap,
                "compression.type": codec,
                "linger.ms": 10,
                "acks": "all",
                "log_level": 0,
            }
            producer = Producer(
                {**settings, "transactional.id": f"producer-{topic}"} if topic == "settled" else {**settings, "enable.idempotence": True}
            )
            share = RECORDS_A_ROUND // len(TOPICS)
            if topic != "settled":
                self._write(producer, topic, share, filler)
                producer.flush(60)
                continue
            producer.init_transactions(60)
            for index in range(8):
                producer.begin_transaction()
                self._write(producer, topic, share // 8, filler)
                producer.flush(60)
                if index % 4 == 3:
                    producer.abort_transaction(60)
                else:
                    producer.commit_transaction(60)

    def _write(self, producer: Producer, topic: str, count: int, filler: str) -> None:
        for _ in range(count):
            self._number += 1
            while True:
                try:
                    producer.produce(topic, value=f"{self._number} {filler}".encode(), key=b"k", partition=self._number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)

    def _start(self) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).parent / "ferry"), "run", str(self._config), "--flow", FLOW, "--master", "local[2]"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def _at_work(self, process: subprocess.Popen[str]) -> bool:
        """Return when the run says that lanes start; its further output is drained."""
        ready = threading.Event()

        def drain() -> None:
            for line in process.stderr or ():
                if "offsets to go" in line:
                    ready.set()
            ready.set()

        threading.Thread(target=drain, daemon=True).start()
        return ready.wait(START_SECONDS) and process.poll() is None

    def _await_open_transaction(self, process: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + FIRST_TRANSACTION_SECONDS
        while not self._open_transactions() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def _strike(self, strike: str, tree: list[psutil.Process]) -> None:
        workers = [member for member in tree if "pyspark.daemon" in _command(member)]
        jvms = [member for member in tree if "SparkSubmit" in _command(member)]
        pause = self._random.uniform(0.5, 6.0)
        match strike:
            case "worker":
                _signal(self._random.sample(workers, 1) if workers else [], signal.SIGKILL)
            case "jvm":
                _signal(jvms, signal.SIGKILL)
            case "tree":
                _signal(tree, signal.SIGKILL)
            case "target broker" | "source broker":
                cluster = self._target if strike.startswith("target") else self._source
                cluster.kill()
                time.sleep(self._random.uniform(0.0, 3.0))
                cluster.run()
            case "stop worker" | "stop jvm":
                chosen = workers if strike == "stop worker" else jvms
                _signal(chosen, signal.SIGSTOP)
                time.sleep(pause)
                _signal(chosen, signal.SIGCONT)
            case "stop target broker":
                self._target.pause()
                time.sleep(pause)
                self._target.resume()
            case _:
                _signal(tree, signal.SIGSTOP)
                second = self._start()
                self._at_work(second)
                time.sleep(self._random.uniform(0.0, 4.0))
                _signal(tree, signal.SIGCONT)  # the first one wakes up while the second one works
                self._wait(second)

    def _wait(self, process: subprocess.Popen[str]) -> None:
        try:
            process.wait(RUN_SECONDS)
        except subprocess.TimeoutExpired:
            self.outcome.problems.append(f"a run did not end within {RUN_SECONDS:.0f} s")
        _signal(_tree(process.pid), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)

    def _run_to_the_end(self) -> bool:
        process = self._start()
        self._at_work(process)
        self._wait(process)
        return process.returncode == 0

    def _open_transactions(self) -> int:
        """Open transactions of the flow's lanes, by the target's own coordinator."""
        loop = EventLoop()
        connection = ClusterConnection(loop, load_config(self._config).flows[0].target, ClientRole.ADMIN)

        async def ask() -> int:
            await connection.open()
            answer = await connection.send(ListTransactionsRequest(state_filters=[OPEN_STATE], producer_id_filters=[], max_version=0), 1)
            return sum(state.transactional_id.startswith(f"ferry-{FLOW}-") for state in answer.transaction_states)

        try:
            return loop.run(ask)
        finally:
            connection.close()
            loop.close()


def run_series(seed: int, rounds: int, say: Callable[[str], None]) -> Outcome:
    """A whole series; its outcome."""
    with tempfile.TemporaryDirectory(prefix="ferry-faults-") as directory:
        series = Series(Path(directory), seed, say)
        try:
            watcher = series.prepare()
            for number in range(1, rounds + 1):
                series.round(number)
            return series.finish(watcher)
        finally:
            series.close()


def number_of(value: bytes) -> int:
    """The number that a record's value begins with."""
    return int(value.split(b" ", 1)[0])


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
