"""`python -m benchmarks.tiered`: Ferry and MirrorMaker 2 copy a backlog of which nine tenths lie in the source's remote storage (KIP-405).

The remote storage is a directory of this machine (tools/kafka/tiered.py), so what is compared is how the copiers read it, not how fast an
object store is. Beside it the same backlog without remote storage. The target has remote storage too: MirrorMaker 2 cannot create the
topics elsewhere.
"""

from __future__ import annotations

import os
import sys
import time

from tools.kafka import SandboxCluster, tiered

from benchmarks import ferry_side, mm2
from benchmarks.flow import Clusters, Flow
from benchmarks.measure import measure
from benchmarks.run import BROKER_JAVA, WORK
from benchmarks.shapes import Shape
from benchmarks.sources import source_topics
from benchmarks.topics import NO_CONFIG

SHAPE = Shape("tiered", "1 KB, uncompressed, 110-record batches", 1_000, "none", 110, 200.0, 1, 4)
REMOTE = 0.9


def main() -> int:
    """0 when every copy arrived."""
    directory = WORK / f"tiered-{time.time_ns()}"
    directory.mkdir(parents=True)
    print(f"{SHAPE.title}, {SHAPE.gigabytes:.1f} GB in {SHAPE.partitions} partitions; load {os.getloadavg()[0]:.1f}", flush=True)
    here, there = (tiered.broker_properties(directory / f"remote-{side}") for side in ("source", "target"))
    with (
        SandboxCluster.start(directory / "source", "source", properties=here, java_options=BROKER_JAVA) as source,
        SandboxCluster.start(directory / "target", "target", properties=there, java_options=BROKER_JAVA) as target,
    ):
        clusters = Clusters(source.bootstrap, target.bootstrap)
        for where, config in (("local", NO_CONFIG), ("remote", tiered.TOPIC)):
            with source_topics(clusters, SHAPE, config) as names:
                share = tiered.await_remote(source.bootstrap, names[0], SHAPE.partitions, REMOTE) if config else 0.0
                flow = Flow.fresh(clusters, names, SHAPE.partitions)
                jobs = (("Ferry", ferry_side.job(flow, directory)), ("MirrorMaker 2", mm2.job(flow, SHAPE.codec, directory, tuned=False)))
                for copier, job in jobs:
                    found = measure(job, SHAPE.records)
                    speed = found.records * SHAPE.record_bytes / (found.caught_up_seconds - found.first_seconds) / 1e6
                    print(f"{where} ({share:.0%} remote), {copier}: {speed:.1f} MB/s, CPU {found.cpu_seconds:.1f} s", flush=True)
                    flow.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
