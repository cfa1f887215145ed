"""`python -m benchmarks.scale.day`: ledger and state after a day of runs that follow, with a commit a second, on a real broker.

Ferry's own code lets the receipts grow, and a new run begins every ten minutes. The same day with a tenth of the commits stands beside it:
what is kept should hardly depend on them. The broker's clock is not the simulation's, so it compacts without a lag.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from confluent_kafka import Producer
from tools.kafka import SandboxCluster

from benchmarks.scale.steps import disk_bytes
from benchmarks.scale.year import flow_with_topics, wait_for_compaction
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.joined_receipts import grown
from ferry.ledger.counters import Counters
from ferry.ledger.open_flow import open_flow
from ferry.ledger.reading import read_receipts
from ferry.ledger.receipts import Receipt, ReceiptKind, encode_receipt
from ferry.ledger.state import Head, encode_state
from ferry.translation.offset_map import LogBounds, OffsetMap
from ferry.verify.comparison import PartitionEvidence
from ferry.verify.verify_plan import plan_partition

DAY_SECONDS, RUN_SECONDS = 24 * 3600, 600
# Records of a commit; its marker takes one more offset of the target.
RECORDS, STEP = 10, 11
WORK = Path(__file__).resolve().parents[2] / ".ferry" / "day"
SOURCE, REMOTE = UUID(int=1), UUID(int=2)
HEAD = (
    "| a commit every | commits | live receipts | ledger on disk, MiB | to read it, s | then to translate an offset of each partition, s "
    "| to plan a verify, s | state on disk, MiB | to read it, s |"
)


def main(arguments: list[str] | None = None) -> int:
    """0 when the broker holds in the end what was simulated."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.day", description=__doc__)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--directory", type=Path, default=WORK)
    options = parser.parse_args(arguments)
    print(HEAD)
    print(f"|{' --- |' * HEAD.count(' |')}", flush=True)
    for seconds in (10, 1):
        directory: Path = options.directory / str(seconds)
        with SandboxCluster.start(directory / "B", "B", properties={"log.cleaner.backoff.ms": "500"}) as cluster:
            print(_day(cluster, directory, options.partitions, round(options.hours * 3600), seconds), flush=True)
        shutil.rmtree(directory)
    return 0


def _day(cluster: SandboxCluster, directory: Path, partitions: int, length: int, seconds: int) -> str:
    flow = flow_with_topics(cluster, directory, min_compaction_lag_ms="0")
    producer = Producer({**cluster.client_settings(), "linger.ms": 50, "acks": "all", "queue.buffering.max.messages": 1_000_000})
    live: dict[bytes, Receipt] = {}
    for receipt in _commits(partitions, length, seconds):
        key, value = encode_receipt(receipt)
        live[key] = receipt
        share = TopicPartition(receipt.topic, receipt.partition).share(flow.ledger_partitions)
        producer.produce(flow.ledger_topic, value, key, share)
        head = Head("t", receipt.partition, receipt.upstream_end, str(SOURCE), "A.t", str(REMOTE), "l", 1, receipt.run_id)
        producer.produce(flow.state_topic, *reversed(encode_state(head)), 0)
        producer.poll(0)
    producer.flush()
    wait_for_compaction(cluster, flow.ledger_topic)
    wait_for_compaction(cluster, flow.state_topic)
    began = time.perf_counter()
    with open_flow(flow) as opened:
        found = read_receipts(opened)
    read = time.perf_counter() - began
    if sorted(found, key=repr) != sorted(live.values(), key=repr):
        raise SystemExit("the broker holds other receipts than were written")
    own = [[receipt for receipt in found if receipt.partition == partition] for partition in range(partitions)]
    began = time.perf_counter()
    for receipts in own:
        OffsetMap(receipts, LogBounds(target_end=receipts[-1].downstream_end)).translate(receipts[-1].upstream_end // 2)
    translated = time.perf_counter() - began
    began = time.perf_counter()
    for partition, receipts in enumerate(own):
        plan_partition(_evidence(partition, receipts))
    planned = time.perf_counter() - began
    began = time.perf_counter()
    with open_flow(flow) as opened:
        _ = opened.ask_anew(stable=True).answer().state
    data = cluster.directory / "data"
    sizes = [sum(disk_bytes(path) for path in data.glob(f"{name}-*")) / 2**20 for name in (flow.ledger_topic, flow.state_topic)]
    commits = length // seconds * partitions
    state = f"{sizes[1]:.1f} | {time.perf_counter() - began:.2f}"
    return f"| {seconds} s | {commits:,} | {len(live):,} | {sizes[0]:.1f} | {read:.2f} | {translated:.2f} | {planned:.2f} | {state} |"


def _evidence(partition: int, receipts: list[Receipt]) -> PartitionEvidence:
    ends = max(receipt.upstream_end for receipt in receipts), max(receipt.downstream_end for receipt in receipts)
    return PartitionEvidence("t", partition, SOURCE, "A.t", REMOTE, 0, ends[0], 0, ends[1], tuple(receipts), ends[0])


def _commits(partitions: int, length: int, seconds: int) -> Iterator[Receipt]:
    """What each commit writes of each partition."""
    growing: dict[int, Receipt] = {}
    for number in range(length // seconds):
        run = number * seconds // RUN_SECONDS
        for partition in range(partitions):
            more, last = _receipt(number, partition, run), growing.get(partition)
            growing[partition] = more if last is None or last.run_id != more.run_id else grown(last, more)
            yield growing[partition]


def _receipt(number: int, partition: int, run: int) -> Receipt:
    start, there = number * RECORDS, number * STEP
    return Receipt(
        ReceiptKind.COPIED,
        "t",
        partition,
        str(SOURCE),
        "A.t",
        str(REMOTE),
        start,
        start + RECORDS,
        downstream_end=there + RECORDS,
        runs=((start, there, RECORDS),),
        counters=Counters(records=RECORDS, bytes=1_000, forwarded=1, transactions=1),
        run_id=f"run-{run}",
    )


if __name__ == "__main__":
    sys.exit(main())
