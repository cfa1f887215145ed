"""`python -m benchmarks.scale.year`: the ledger of a year of runs, one every ten minutes, on a real broker.

Ferry's own codec writes the receipts, and Ferry's own compaction merges them by the clock of the simulation. The broker compacts the
topic. At the end of the year, the table shows what is left and how long a run takes to read it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from tools.kafka import SandboxCluster

from benchmarks.scale.steps import disk_bytes
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import open_cluster
from ferry.config import Flow, load_config
from ferry.copying import ledger_compaction
from ferry.ledger.counters import Counters
from ferry.ledger.open_flow import open_flow
from ferry.ledger.reading import read_receipts
from ferry.ledger.receipts import Receipt, ReceiptKind, decode_receipt, encode_receipt
from ferry.ledger.state import FlowRecord, Head, encode_state
from ferry.ledger.topics import ensure_internal_topics

MINUTES = 10
RUNS = 365 * 24 * 60 // MINUTES
RUN_MILLISECONDS = MINUTES * 60 * 1000
RECORDS = 10
# Each transaction leaves a marker in the remote partition, so that no two receipts' runs are one.
STEP = RECORDS + 1
WORK = Path(__file__).resolve().parents[2] / ".ferry" / "year"
SETTLED_SECONDS = 20.0
# The target keeps a week, as is Kafka's default.
RETAINED_RUNS = 7 * 24 * 60 // MINUTES

Write = Callable[[bytes, "bytes | None", int, int], None]


@dataclass
class SimulatedLedger:
    """A compacted ledger of some partitions, as it stands after each run; `write` takes (key, value, ms, ledger partition)."""

    partitions: int
    retained_runs: int
    width: int = 5
    begun: int = 0
    write: Write | None = None
    live: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)
    record: FlowRecord = field(default_factory=lambda: FlowRecord("A->B", 8))
    held_ever: int = 0
    compactions: int = 0
    peak: int = 0

    def run(self, number: int) -> int:
        """One run, with the compaction when it is due; its time in ms."""
        now = self.begun + number * RUN_MILLISECONDS
        for partition in range(self.partitions):
            self._put(*encode_receipt(_receipt(number, partition)), now, TopicPartition("t", partition).share(self.width))
        self.held_ever += self.width  # the ends of transactions
        self.peak = max(self.peak, len(self.live))
        if ledger_compaction.is_due(self.held_ever, self.record):
            self._tidy(number, now)
        return now

    def receipts(self) -> list[Receipt]:
        """What a reader sees."""
        return [decode_receipt(key, value) for key, (value, _) in self.live.items()]

    def _tidy(self, number: int, now: int) -> None:
        found = [(decode_receipt(key, value), moment) for key, (value, moment) in self.live.items()]
        log_start = max(0, number - self.retained_runs) * STEP
        starts = {("A.t", partition): log_start for partition in range(self.partitions)}
        for key, value in ledger_compaction.records_of(ledger_compaction.merge_receipts(ledger_compaction.mergeable(found, now), starts)):
            self._put(key, value, now, TopicPartition("t", json.loads(key)["partition"]).share(self.width))
        self.compactions += 1
        self.record = FlowRecord("A->B", 8, tidied=self.held_ever, receipts=len(self.live))

    def _put(self, key: bytes, value: bytes | None, now: int, place: int) -> None:
        if value is None:
            self.live.pop(key, None)
        else:
            self.live[key] = (value, now)
        self.held_ever += 1
        if self.write is not None:
            self.write(key, value, now, place)


def main(arguments: list[str] | None = None) -> int:
    """0 when the broker holds in the end what was simulated."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.year", description=__doc__)
    parser.add_argument("--partitions", type=int, default=20, help="of the source, all of them active in every run")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--directory", type=Path, default=WORK)
    options = parser.parse_args(arguments)
    directory: Path = options.directory
    with SandboxCluster.start(directory / "B", "B", properties={"log.retention.ms": "-1", "log.cleaner.backoff.ms": "500"}) as cluster:
        for line in _year(cluster, directory, options.partitions, options.runs):
            print(line, flush=True)
    shutil.rmtree(directory)
    return 0


def flow_with_topics(cluster: SandboxCluster, directory: Path, **configs: str) -> Flow:
    """A flow from a source that is not there, with Ferry's own topics on the target; `configs` of ledger and state, with _ for a dot."""
    config = directory / "simulated.properties"
    lines = ["clusters = A, B", "A.bootstrap.servers = 127.0.0.1:1", f"B.bootstrap.servers = {cluster.bootstrap}", "A->B.enabled = true"]
    config.write_text("\n".join([*lines, "ferry.internal.topics.replication.factor = 1"]) + "\n", encoding="latin-1")
    flow = load_config(config).flows[0]
    changes = {key.replace("_", "."): value for key, value in configs.items()}
    with open_cluster(flow.target) as target:
        ensure_internal_topics(flow, target.admin)
        target.admin.alter_topic_configs(dict.fromkeys((flow.ledger_topic, flow.state_topic), changes))
    return flow


def _year(cluster: SandboxCluster, directory: Path, partitions: int, runs: int) -> Iterator[str]:
    # A broker keeps tombstones for a day of its own clock, which is a year here.
    flow = flow_with_topics(cluster, directory, delete_retention_ms="0", min_compaction_lag_ms="0")
    ledger, state = flow.ledger_topic, flow.state_topic
    producer = Producer({**cluster.client_settings(), "linger.ms": 50, "acks": "all", "queue.buffering.max.messages": 1_000_000})

    def write(key: bytes, value: bytes | None, now: int, place: int) -> None:
        producer.produce(ledger, value, key, place, timestamp=now)
        producer.poll(0)

    begun = time.time_ns() // 1_000_000 - runs * RUN_MILLISECONDS
    made = SimulatedLedger(partitions, RETAINED_RUNS, flow.ledger_partitions, begun, write)
    yield "| runs | receipts written | live receipts | most so far | merges | ledger on disk, MiB | to read it, s |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for number in range(runs):
        now = made.run(number)
        for partition in range(partitions):
            head = Head("t", partition, (number + 1) * RECORDS, "s", "A.t", "r", "l", 1, f"run-{number}")
            producer.produce(state, *reversed(encode_state(head)), 0, timestamp=now)
        producer.produce(state, *reversed(encode_state(made.record)), 0, timestamp=now)
        if (number + 1) % max(1, runs // 6) == 0:
            producer.flush()
            wait_for_compaction(cluster, ledger)
            began = time.perf_counter()
            with open_flow(flow) as opened:
                found = read_receipts(opened)
            seconds = time.perf_counter() - began
            if sorted(found, key=repr) != sorted(made.receipts(), key=repr):
                raise SystemExit(f"after {number + 1} runs the broker holds other receipts than were written")
            used = sum(disk_bytes(path) for path in (cluster.directory / "data").glob(f"{ledger}-*")) / 2**20
            written = (number + 1) * partitions
            yield f"| {number + 1:,} | {written:,} | {len(found):,} | {made.peak:,} | {made.compactions} | {used:.1f} | {seconds:.2f} |"
    wait_for_compaction(cluster, state)
    began = time.perf_counter()
    with open_flow(flow) as opened:
        heads = opened.ask_anew(stable=True).answer().state.heads
    used = disk_bytes(cluster.directory / "data" / f"{state}-0") / 2**20
    yield f"\nstate topic after {runs:,} runs: {len(heads)} heads, {used:.1f} MiB on disk, read in {time.perf_counter() - began:.2f} s"


def wait_for_compaction(cluster: SandboxCluster, topic: str) -> None:
    """Until the topic has stayed as large as it is for a while."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < SETTLED_SECONDS:
        now = sum(disk_bytes(path) for path in (cluster.directory / "data").glob(f"{topic}-*"))
        if now != size:
            size, since = now, time.monotonic()
        time.sleep(1)


def _receipt(run: int, partition: int) -> Receipt:
    start, there = run * RECORDS, run * STEP
    return Receipt(
        ReceiptKind.COPIED,
        "t",
        partition,
        "s",
        "A.t",
        "r",
        start,
        start + RECORDS,
        downstream_end=there + RECORDS,
        runs=((start, there, RECORDS),),
        counters=Counters(records=RECORDS, bytes=1_000, forwarded=1),
        min_timestamp=run * RUN_MILLISECONDS,
        max_timestamp=run * RUN_MILLISECONDS,
        run_id=f"run-{run}",
    )


if __name__ == "__main__":
    sys.exit(main())
