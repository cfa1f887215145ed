"""From MirrorMaker 2 to Ferry under load, and back again: real MM2, the same mm2.properties for both, compared through librdkafka."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import javaproperties
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tests.conftest import Lab
from tests.log_ends import until_markers
from tests.opened import export_offsets, read_connect_offsets, read_mm2_positions, seed
from tests.waiting import NEVER_SECONDS, until
from tools.kafka import SandboxCluster, read_all
from tools.kafka.jars import tools_jars
from tools.kafka.mirror_maker import MirrorMaker

from ferry.config import Flow, load_config
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode, ReplicatorActive
from ferry.ledger.run_report import RunReport
from ferry.migration.mm2_positions import default_offsets_topic, last_offsets
from ferry.migration.positions import GivenPositions
from ferry.sandbox.jars import java
from ferry.sandbox.ports import free_ports

pytestmark = pytest.mark.migration

RunFlow = Callable[[Flow], RunReport]
PARTITIONS = 3
RECORDS = 300
ONE_BROKER = [
    f"{name}.replication.factor = 1"
    for name in ("offset.storage", "config.storage", "status.storage", "offset-syncs.topic", "checkpoints.topic", "heartbeats.topic")
]
# What a killed MM2 leaves open holds readers back until the broker ends it.
EXACTLY_ONCE = [
    "B.exactly.once.source.support = enabled",
    "A.consumer.isolation.level = read_committed",
    "B.producer.transaction.timeout.ms = 5000",
]


class Load:
    """Numbers its records in every partition, until it is told to stop."""

    def __init__(self, cluster: SandboxCluster, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5})
        self._topic = topic
        self.count = 0
        self._over = threading.Event()
        self._thread: threading.Thread

    def __enter__(self) -> Load:
        self._over.clear()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        assert self._producer.flush(30) == 0

    def _work(self) -> None:
        while not self._over.wait(0.005):
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, key=b"k", value=b"%d" % self.count, partition=partition)
            self._producer.poll(0)
            self.count += 1


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=PARTITIONS)


@pytest.fixture
def load(source_cluster: SandboxCluster, topic: str) -> Load:
    return Load(source_cluster, topic)


@pytest.fixture
def migrating(
    config_file: Callable[..., Path], topic: str, tmp_path: Path
) -> Iterator[Callable[..., tuple[Flow, Callable[[], MirrorMaker]]]]:
    """A flow, and how MM2 is started for it from the same file; whatever was started is stopped at the end."""
    started: list[MirrorMaker] = []

    def begin(*lines: str) -> tuple[Flow, Callable[[], MirrorMaker]]:
        path = config_file(
            f"A->B.topics = {topic}",
            "B->A.enabled = false",
            "B->A.emit.heartbeats.enabled = false",
            "tasks.max = 2",
            "dedicated.mode.enable.internal.rest = true",
            f"listeners = http://127.0.0.1:{free_ports(1)[0]}",
            *ONE_BROKER,
            *lines,
        )
        properties = javaproperties.loads(path.read_text(encoding="latin-1"))

        def start() -> MirrorMaker:
            started.append(MirrorMaker.start(properties, tmp_path / f"started{len(started)}.properties"))
            return started[-1]

        return load_config(path).flows[0], start

    yield begin
    for running in started:
        running.stop()


def remote(flow: Flow, topic: str) -> str:
    return f"{flow.source.alias}.{topic}"


def wait_for_copies(mirror: MirrorMaker, cluster: SandboxCluster, topic: str, records: int) -> None:
    """Until what is committed in every partition of a remote topic ends at `records` offsets or later."""

    def there() -> bool:
        mirror.check()
        return min(ends(cluster, topic), default=0) >= records

    until(there, mirror.log_tail)


def ends(cluster: SandboxCluster, topic: str) -> list[int]:
    """Where the partitions of a topic end; nothing where it does not exist."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "look", "isolation.level": "read_committed"})
    try:
        if topic not in consumer.list_topics(timeout=15).topics:
            return []
        return [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=15)[1] for number in range(PARTITIONS)]
    except KafkaException as problem:
        if problem.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
            raise
        return []  # it was created a moment ago
    finally:
        consumer.close()


def wait_for_offsets(flow: Flow) -> None:
    """Until MM2 has written down at least one position."""
    until(lambda: last_offsets(read_connect_offsets(flow, default_offsets_topic(flow))))


def positions_of_the_stopped(flow: Flow) -> GivenPositions:
    """What MM2 left, as soon as the cluster has noticed that it is gone."""
    deadline = time.monotonic() + NEVER_SECONDS
    while True:
        try:
            return read_mm2_positions(flow)
        except ReplicatorActive:
            assert time.monotonic() < deadline
            time.sleep(1)


def values(cluster: SandboxCluster, topic: str) -> list[list[int]]:
    return [[int(record.value or b"") for record in partition] for partition in read_all(cluster.bootstrap, topic)]


def go_on(flow: Flow, given: GivenPositions) -> None:
    outcome = seed(flow, RunRequest(flow.name, "seed"), given)
    assert (outcome.exit_code, outcome.left_out, len(outcome.seeds)) == (ExitCode.DONE, (), PARTITIONS)
    assert all(written.foreign for written in outcome.seeds)


def test_from_mirror_maker_to_ferry_and_back_with_exactly_once(
    migrating: Callable[..., tuple[Flow, Callable[[], MirrorMaker]]], topic: str, load: Load, lab: Lab
) -> None:
    flow, start = migrating(*EXACTLY_ONCE)
    with load:
        mirror = start()
        wait_for_copies(mirror, lab.target, remote(flow, topic), RECORDS)
        with pytest.raises(ReplicatorActive, match=rf"Connect group {flow.source.alias}-mm2 .* stop every connect-mirror-maker"):
            read_mm2_positions(flow)
        mirror.stop()
        given = positions_of_the_stopped(flow)
        assert "in the transactions of its records" in given.notices[0]
        go_on(flow, given)
        assert lab.run(flow).exit_code is ExitCode.DONE
    assert lab.run(flow).exit_code is ExitCode.DONE
    assert values(lab.target, remote(flow, topic)) == values(lab.source, topic)

    exported = export_offsets(flow, RunRequest(flow.name, "export"), write=True)
    assert (len(exported.offsets), exported.left_out) == (PARTITIONS, ())
    with load:
        before = [len(partition) for partition in values(lab.target, remote(flow, topic))]
        mirror = start()
        wait_for_copies(mirror, lab.target, remote(flow, topic), max(before) * 2)
        mirror.kill()
        copied = values(lab.target, remote(flow, topic))
        assert all(len(partition) > count for partition, count in zip(copied, before, strict=True))
        go_on(flow, positions_of_the_stopped(flow))
    assert lab.run(flow).exit_code is ExitCode.DONE
    until_markers(lab.target, remote(flow, topic))
    assert values(lab.target, remote(flow, topic)) == values(lab.source, topic)


def test_what_is_printed_is_what_would_be_written(
    migrating: Callable[..., tuple[Flow, Callable[[], MirrorMaker]]], topic: str, load: Load, lab: Lab, tmp_path: Path
) -> None:
    """Kafka's console producer takes the lines; keys lie where Java's producer puts them, as compaction needs it."""
    flow, _ = migrating()
    with load:
        time.sleep(0.2)
    lab.run(flow)
    ours, theirs = (lab.topic(lab.target, partitions=25, config={"cleanup.policy": "compact"}) for _ in range(2))
    shell = [str(Path(sys.executable).with_name("ferry")), "export-offsets", str(tmp_path / "mm2.properties"), "--flow", flow.name]
    printed = subprocess.run([*shell, "--offsets-topic", theirs], capture_output=True, check=True, timeout=NEVER_SECONDS)
    assert printed.stdout.count(b"\n") == PARTITIONS
    console = [java(), "-cp", f"{tools_jars()}/*", "org.apache.kafka.tools.ConsoleProducer", "--topic", theirs]
    console += ["--bootstrap-server", lab.target.bootstrap, "--reader-property", "parse.key=true"]
    subprocess.run(console, input=printed.stdout, capture_output=True, check=True, timeout=NEVER_SECONDS)
    subprocess.run([*shell, "--offsets-topic", ours, "--write"], capture_output=True, check=True, timeout=NEVER_SECONDS)
    found = [
        [[(record.key, record.value) for record in partition] for partition in read_all(lab.target.bootstrap, name)]
        for name in (ours, theirs)
    ]
    assert found[0] == found[1]
    assert sum(map(len, found[0])) == PARTITIONS


def test_without_exactly_once_after_a_kill(
    migrating: Callable[..., tuple[Flow, Callable[[], MirrorMaker]]], topic: str, load: Load, lab: Lab
) -> None:
    flow, start = migrating("B.offset.flush.interval.ms = 2000")
    with load:
        mirror = start()
        wait_for_copies(mirror, lab.target, remote(flow, topic), RECORDS)
        wait_for_offsets(flow)
        mirror.kill()
        given = positions_of_the_stopped(flow)
        assert "without exactly-once" in given.notices[0]
        left_by_mm2 = values(lab.target, remote(flow, topic))
        go_on(flow, given)
        lab.run(flow)
    assert lab.run(flow).exit_code is ExitCode.DONE
    there = values(lab.source, topic)
    doubled = 0
    for number, copied in enumerate(values(lab.target, remote(flow, topic))):
        position = given.positions.get((topic, number), 0)  # without an offset: from the beginning
        # MM2's records, then everything from its last offsets on: what it had not written down is there twice.
        assert copied == left_by_mm2[number] + there[number][position:]
        twice = [value for value, times in Counter(copied).items() if times > 1]
        assert twice == there[number][position : len(left_by_mm2[number])]
        assert sorted(set(copied)) == there[number]
        doubled += len(twice)
    assert doubled, "MM2 had written down all that it copied: the test shows nothing"
