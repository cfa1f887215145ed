"""MirrorMaker 2's own Java classes, asked a question a line, and a chain of three clusters to ask about."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.opened import append_records, assemble_report, copy_run, prepare_run, sync_heartbeat, sync_offset_syncs
from tools.kafka import SandboxCluster
from tools.kafka.jars import mirror_maker_jars
from tools.kafka.topics import delete_topics

from ferry.config import FerryConfig, Flow, load_config
from ferry.config.mm2_topics import Mm2Topic
from ferry.config.settings import WantedReplicas
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.ledger.open_flow import open_flow
from ferry.sandbox.jars import java
from ferry.syncs.mm2_topics import PARTITION, ensure_mm2_topic
from ferry.wire.internal_records import Checkpoint

PROBE = Path(__file__).parents[1] / "java" / "Probe.java"
ANSWER_SECONDS = 60.0
RECORDS = 1_000

Ask = Callable[..., str]


@dataclass(frozen=True)
class Chain:
    """Flows first -> second -> third; `clusters` by alias, `topic` is the first one's."""

    path: Path
    aliases: tuple[str, str, str]
    clusters: dict[str, SandboxCluster]
    topic: str

    @property
    def config(self) -> FerryConfig:
        return load_config(self.path)

    def properties(self, place: int, **more: str) -> str:
        """What the Java clients need to know of the cluster at `place`, as the probe takes it."""
        entries = {"bootstrap.servers": self.clusters[self.aliases[place]].bootstrap}
        entries |= {name.replace("_", "."): value for name, value in more.items()}
        return ";".join(f"{name}={value}" for name, value in entries.items())


@pytest.fixture(scope="session")
def ask_java() -> Iterator[Ask]:
    """`ask_java(question, properties, *words)`: the answer of MM2's classes, see Probe.java."""
    command = [java(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{mirror_maker_jars()}/*", str(PROBE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdin
        assert process.stdout

        def ask(question: str, properties: str, *words: str) -> str:
            assert process.stdin
            assert process.stdout
            process.stdin.write("\t".join((question, properties, *words)) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, f"the probe ended at {question}; its last words are on stderr"
            return answer.removesuffix("\n")

        yield ask
        process.stdin.close()
        process.wait(ANSWER_SECONDS)


@pytest.fixture(scope="module")
def chain(source_cluster: SandboxCluster, target_cluster: SandboxCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Records and heartbeats copied along three clusters; checkpoints of two groups at the second, with some rubbish among them."""
    directory = tmp_path_factory.mktemp("chain")
    _forget_heartbeats(source_cluster, target_cluster)
    with SandboxCluster.start(directory / "third", "third") as third:
        suffix = secrets.token_hex(3)
        aliases = f"a{suffix}", f"b{suffix}", f"c{suffix}"
        clusters = dict(zip(aliases, (source_cluster, target_cluster, third), strict=True))
        found = Chain(directory / "mm2.properties", aliases, clusters, f"t-{suffix}")
        found.path.write_text(_config(found), encoding="latin-1")
        _fill(found)
        yield found
        _forget_heartbeats(source_cluster, target_cluster)


def _forget_heartbeats(*clusters: SandboxCluster) -> None:
    """Every flow of other tests would copy those of the chain, and the chain theirs."""
    for cluster in clusters:
        names = AdminClient(cluster.client_settings()).list_topics(timeout=10).topics
        delete_topics(cluster.client_settings(), *(name for name in names if name.endswith("heartbeats")))


def _config(chain: Chain) -> str:
    a, b, c = chain.aliases
    lines = [
        f"clusters = {a}, {b}, {c}",
        "replication.factor = 1",
        *(f"{alias}.bootstrap.servers = {cluster.bootstrap}" for alias, cluster in chain.clusters.items()),
        f"{a}->{b}.enabled = true",
        f"{a}->{b}.topics = {chain.topic}",
        f"{b}->{c}.enabled = true",
        f"{b}->{c}.topics = {a}.{chain.topic}",
    ]
    return "\n".join(lines) + "\n"


def _fill(chain: Chain) -> None:
    a = chain.aliases[0]
    settings = chain.clusters[a].client_settings()
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(chain.topic, 1, 1)])[chain.topic].result(30)
    producer = Producer(settings)
    for number in range(RECORDS):
        producer.produce(chain.topic, b"%d" % number)
    assert producer.flush(60) == 0
    first, second = chain.config.flows
    # First the heartbeats of both flows, then the copies: so one pass brings them to the end of the chain.
    for flow in (first, second):
        assert sync_heartbeat(flow).failed == ()
    for flow in (first, second):
        _run(flow)
        sync_offset_syncs(flow)
    _write_checkpoints(first, f"{a}.checkpoints.internal", f"{a}.{chain.topic}")


def _run(flow: Flow) -> None:
    request = RunRequest(flow.name, f"run-{secrets.token_hex(3)}")
    prepare_run(flow, request, spark_follows=True)
    copy_run(flow, request, InlineLaneRunner(), lambda _: None)
    assert assemble_report(flow, request).exit_code == 0


def _write_checkpoints(flow: Flow, topic: str, remote: str) -> None:
    one = WantedReplicas("checkpoints.topic.replication.factor", 1, given=True)
    with open_flow(flow) as opened:
        ensure_mm2_topic(opened, Mm2Topic(flow.target, topic, "checkpoints", one), dry_run=False)
    checkpoints = [
        Checkpoint("g.1", remote, 0, 5, 5),
        Checkpoint("g.1", remote, 0, 10, 11, "näher"),
        Checkpoint("g.1", remote, 1, 3, 3),
        Checkpoint("gx1", remote, 0, 7, 7, "m"),
        Checkpoint("größe", remote, 0, 2, 2),
        Checkpoint("other-group", remote, 0, 1, 1),
    ]
    records = [(entry.encode_key(), entry.encode_value()) for entry in checkpoints]
    # A short buffer is passed over by the Java client too; a null value would end it.
    records.insert(2, (b"\0\1x", b""))
    append_records(flow.target, {topic: records}, partition=PARTITION, timestamp=time.time_ns() // 1_000_000)
