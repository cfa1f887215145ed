"""One round of MirrorMaker 2: dedicated mode, exactly-once, two tasks.

Each round has a source alias of its own, so remote names, offsets and groups are new and MM2 starts from nothing. The tuned row reads 10,000
records a poll and fetches and produces large batches; the default row changes nothing but what exactly-once and one broker ask for.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from benchmarks.java import mirror_maker_classpath

TASKS = 2
HEAP = "2g"

EXACTLY_ONCE = {
    "dedicated.mode.enable.internal.rest": "true",
    "{target}.exactly.once.source.support": "enabled",
    "{source}.consumer.isolation.level": "read_committed",
}
ONE_BROKER = {
    "replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
}
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


@dataclass(frozen=True)
class Flow:
    """What one round copies: all topics of `topics` (a regular expression) from one cluster to the other."""

    source_alias: str
    source: str
    target: str
    topics: str
    codec: str
    target_alias: str = "B"


def properties(flow: Flow, *, tuned: bool, rest_port: int) -> dict[str, str]:
    """The mm2.properties of a round."""
    names = {"source": flow.source_alias, "target": flow.target_alias, "codec": flow.codec}
    forward, back = f"{flow.source_alias}->{flow.target_alias}", f"{flow.target_alias}->{flow.source_alias}"
    settings = {
        "clusters": f"{flow.source_alias}, {flow.target_alias}",
        f"{flow.source_alias}.bootstrap.servers": flow.source,
        f"{flow.target_alias}.bootstrap.servers": flow.target,
        "listeners": f"http://127.0.0.1:{rest_port}",
        f"{forward}.enabled": "true",
        f"{forward}.topics": flow.topics,
        # Nothing but the measured flow: no heartbeats of the other direction.
        f"{back}.enabled": "false",
        f"{back}.emit.heartbeats.enabled": "false",
        "tasks.max": str(TASKS),
        **ONE_BROKER,
        **EXACTLY_ONCE,
        **(TUNED if tuned else {}),
    }
    return {key.format(**names): value.format(**names) for key, value in settings.items()}


def command(config: Path) -> list[str]:
    """The dedicated mode's command line, with the heap and collector of Kafka's own connect-mirror-maker.sh."""
    java = ["java", "-Xms256M", f"-Xmx{HEAP}", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true"]
    java += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return [*java, "-cp", mirror_maker_classpath(), "org.apache.kafka.connect.mirror.MirrorMaker", str(config)]


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def write(settings: dict[str, str], path: Path) -> Path:
    """As a properties file."""
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    return path
