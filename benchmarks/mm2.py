"""MirrorMaker 2's side: dedicated mode, exactly-once, two tasks.

The tuned row reads 10,000 records a poll and fetches and produces large batches with the source's codec; the default row changes only what
exactly-once and clusters of one broker ask for.
"""

from __future__ import annotations

from pathlib import Path

from tools.kafka.jars import mirror_maker_jars
from tools.kafka.mirror_maker import MIRROR_MAKER_CLASS
from tools.kafka.properties_file import write_properties

from benchmarks.flow import Flow
from benchmarks.measure import Job
from ferry.sandbox.jars import java
from ferry.sandbox.ports import free_ports

TASKS = 2
# The heap of Kafka's own connect-mirror-maker.sh.
HEAP = ("-Xms256M", "-Xmx2G")

TUNED = {
    "{source}.consumer.max.poll.records": "10000",
    "{source}.consumer.fetch.min.bytes": "1000000",
    "{source}.consumer.fetch.max.wait.ms": "100",
    "{source}.consumer.max.partition.fetch.bytes": "8388608",
    "{source}.consumer.receive.buffer.bytes": "1048576",
    "{target}.producer.batch.size": "262144",
    "{target}.producer.linger.ms": "20",
    "{target}.producer.buffer.memory": "134217728",
    "{target}.producer.compression.type": "{codec}",
    "{target}.producer.send.buffer.bytes": "1048576",
}


def properties(flow: Flow, codec: str, *, tuned: bool, rest_port: int) -> dict[str, str]:
    """The mm2.properties of a round."""
    back = f"{flow.target_alias}->{flow.source_alias}"
    names = {"source": flow.source_alias, "target": flow.target_alias, "codec": codec}
    return {
        **flow.settings(),
        "tasks.max": str(TASKS),
        # Nothing but the measured flow: no heartbeats of the other direction.
        f"{back}.enabled": "false",
        f"{back}.emit.heartbeats.enabled": "false",
        f"{flow.target_alias}.exactly.once.source.support": "enabled",
        f"{flow.source_alias}.consumer.isolation.level": "read_committed",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{rest_port}",
        **{key.format(**names): value.format(**names) for key, value in (TUNED if tuned else {}).items()},
    }


def job(flow: Flow, codec: str, directory: Path, *, tuned: bool) -> Job:
    """A round, ready to measure. MM2 does not end by itself."""
    config = directory / f"mm2-{flow.mark}.properties"
    write_properties(properties(flow, codec, tuned=tuned, rest_port=free_ports(1)[0]), config)
    machine = [java(), *HEAP, "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
    machine += ["-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    machine += ["-cp", f"{mirror_maker_jars()}/*"]
    command = [*machine, MIRROR_MAKER_CLASS, str(config)]
    return Job(command, directory / f"mm2-{flow.mark}.log", flow.clusters.target, flow.remote_partitions, ends=False)
