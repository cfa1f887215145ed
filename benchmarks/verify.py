"""`python -m benchmarks.verify --gigabytes 10`: how quickly `ferry verify` compares, and how much memory it takes.

Fills a topic on a fresh broker, copies it with `ferry run`, and proves the copy. MB are 10^6 bytes of the source's record batches as they
lie in the log: one side counts, though both are read. MB/s per core divides them by the CPU seconds of the whole command, its start and,
with a Spark master, Spark's processes included; the brokers are processes of their own. Everything is removed at the end.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from pathlib import Path

from tools.kafka.properties_file import write_properties

from benchmarks.ferry_side import properties
from benchmarks.flow import Flow
from benchmarks.process_tree import ProcessTree
from benchmarks.run import WORK, running_clusters
from benchmarks.shapes import Shape
from benchmarks.sources import source_topics

# Both sides hold the data; what brokers need besides, and what must stay free.
SPARE_BYTES = 4e9
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_POLL_SECONDS = 0.2


def main(arguments: list[str] | None = None) -> int:
    """0 when the copy was proved; 1 when a command failed; 2 when there is not enough room."""
    options = _parse(arguments)
    shape = Shape(
        "verify", "verify", options.record_bytes, options.codec, options.records_per_batch, options.gigabytes * 1e3, 1, options.partitions
    )
    WORK.mkdir(parents=True, exist_ok=True)
    needed, free = 2 * options.gigabytes * 1e9 + SPARE_BYTES, shutil.disk_usage(WORK).free
    if free < needed:
        print(f"{WORK} has {free / 1e9:.0f} GB free, and {needed / 1e9:.0f} GB are needed", file=sys.stderr)
        return 2
    # Ended from outside, it stops its brokers all the same.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with running_clusters() as (clusters, directory), source_topics(clusters, shape) as names:
        flow = Flow.fresh(clusters, names, shape.partitions)
        config = directory / "verify.properties"
        write_properties(properties(flow), config)
        report = directory / "proof.json"
        copy = _ferry("run", config, flow, options.master)
        proof = [*_ferry("verify", config, flow, options.master), "--report", str(report)]
        if _measured(copy, directory / "copy.log") is None:
            return 1
        found = _measured(proof, directory / "verify.log")
        if found is None:
            return 1
        _print(json.loads(report.read_text(encoding="utf-8")), *found)
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="record values, in 10^9 bytes (default 1)")
    parser.add_argument("--record-bytes", type=int, default=1_000)
    parser.add_argument("--records-per-batch", type=int, default=500, help="500 records of 1 KB are half a MB, as large producers send")
    parser.add_argument("--codec", choices=CODECS, default="none")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--master", default="inline", help="as of ferry verify; default: inline, one process")
    return parser.parse_args(arguments)


def _ferry(command: str, config: Path, flow: Flow, master: str) -> list[str]:
    return [sys.executable, "-m", "ferry.cli.main", command, str(config), "--flow", flow.name, "--master", master]


def _measured(command: list[str], log: Path) -> tuple[float, float, int] | None:
    """Wall seconds, CPU seconds and peak bytes of the process tree; None, with the log's end on stderr, when it failed."""
    started = time.perf_counter()
    tree = ProcessTree(command, log)
    try:
        while tree.running:
            time.sleep(_POLL_SECONDS)
        seconds, cost = time.perf_counter() - started, tree.cost()
    finally:
        tree.finish()
    if tree.exit_code:
        print(log.read_text(errors="replace")[-2_000:], file=sys.stderr)
        return None
    return seconds, cost.cpu_seconds, cost.peak_bytes


def _print(document: dict[str, object], seconds: float, cpu_seconds: float, peak_bytes: int) -> None:
    size = float(str(document["bytes"])) / 1e6
    stored = float(str(document["bytes_as_stored"])) / 1e6
    print(f"equal: {document['equal']}; {document['records']:,} records, {size:,.0f} MB in {document['ranges']} ranges")
    print(f"{stored / size:.0%} of the bytes compared as stored, without decompressing")
    print(f"{seconds:.1f} s, {size / seconds:,.0f} MB/s; {cpu_seconds:.1f} CPU seconds, {size / cpu_seconds:,.0f} MB/s per core")
    print(f"peak memory of the process tree: {peak_bytes / (1 << 20):,.0f} MiB")


if __name__ == "__main__":
    sys.exit(main())
