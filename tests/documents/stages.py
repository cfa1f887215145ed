"""What the reader of a page has already: clusters with topics and a mm2.properties, MirrorMaker 2's copies, an Airflow.

Each stage begins anew: clusters of an earlier one are stopped, the reader's files are replaced.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from demo.airflow_api import AirflowApi
from demo.airflow_services import DemoAirflow
from tests.documents.code_blocks import Stage
from tests.waiting import NEVER_SECONDS
from tools.kafka.groups import commit_offsets
from tools.kafka.mirror_maker import MirrorMaker

from ferry.sandbox.pair import SandboxStatus, down, status, up

TOPICS = ("orders", "payments")
RECORDS = 3_000
PROPERTIES = """\
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}
A->B.enabled = true
A->B.topics = orders, payments
replication.factor = 1
ferry.internal.topics.replication.factor = 1
"""


def clusters(room: Path) -> Mapping[str, str]:
    """Two clusters, topics with records on A, and a mm2.properties."""
    _clusters(room)
    return {}


def after_mirrormaker(room: Path) -> Mapping[str, str]:
    """As `clusters`, and MirrorMaker 2 has copied everything and was stopped."""
    pair = _clusters(room)
    lines = dict(line.split(" = ", 1) for line in PROPERTIES.format(source=pair.source, target=pair.target).splitlines())
    internal = dict.fromkeys(("checkpoints", "heartbeats", "offset-syncs"), "1")
    factors = {f"{name}.topic.replication.factor": value for name, value in internal.items()}
    storage = {f"{name}.storage.replication.factor": "1" for name in ("offset", "status", "config")}
    own = {name: value for name, value in lines.items() if not name.startswith("ferry.")}
    with MirrorMaker.start({**own, **factors, **storage, "tasks.max": "1"}, room / "mirrormaker.properties") as mirror:
        deadline = time.monotonic() + NEVER_SECONDS
        while _ends(pair.target, "A.orders") < RECORDS or _ends(pair.target, "A.payments") < RECORDS:
            mirror.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"MirrorMaker 2 did not copy in {NEVER_SECONDS:.0f} s:\n{mirror.log_tail()}")
            time.sleep(0.5)
    return {}


def ferry_after_mirrormaker(room: Path) -> Mapping[str, str]:
    """As `after_mirrormaker`, more records came, and Ferry has copied them."""
    after_mirrormaker(room)
    _produce(status(room / ".ferry" / "stage").source)
    _ferry(room, "seed", "--from-mm2")
    _ferry(room, "run")
    return {}


def copied(room: Path) -> Mapping[str, str]:
    """As `clusters`, and one run has copied everything."""
    _clusters(room)
    _ferry(room, "run")
    return {}


def both_ways(room: Path) -> Mapping[str, str]:
    """As `clusters`, with both directions under the same names."""
    _clusters(room)
    with (room / "mm2.properties").open("a", encoding="utf-8") as file:
        file.write("B->A.enabled = true\nB->A.topics = orders, payments\nreplication.policy.class = IdentityReplicationPolicy\n")
    return {}


def copied_both_ways(room: Path) -> Mapping[str, str]:
    """As `both_ways`, and one run has copied everything; a group has read some of it."""
    both_ways(room)
    source = next(
        line.split("=")[1].strip() for line in (room / "mm2.properties").read_text().splitlines() if line.startswith("A.bootstrap")
    )
    commit_offsets({"bootstrap.servers": source}, "billing", {("orders", 0): 5})
    _ferry(room, "run")
    return {}


def airflow(room: Path) -> Mapping[str, str]:
    """As `clusters`, with an Airflow that knows the flow's DAGs. Nothing of it runs: a scheduler would lock its SQLite against commands."""
    _clusters(room)
    with (room / "mm2.properties").open("a", encoding="utf-8") as file:
        file.write("A->B.ferry.schedule = 0 0 * * *\n")
    services = DemoAirflow(room / ".ferry" / "airflow", room / "mm2.properties")
    services.start()
    with AirflowApi(services.url, services.user, services.password) as api:
        api.wait_for_dag("ferry.A.B")
    services.stop()
    return services.environment()


def leave(room: Path) -> None:
    """Stop whatever a stage or a page has left running."""
    if (room / ".ferry" / "demo").exists():
        subprocess.run(["make", "demo-stop"], cwd=room, check=True, capture_output=True)
    if (room / ".ferry" / "airflow").exists():
        DemoAirflow(room / ".ferry" / "airflow", room / "mm2.properties").stop()
    for directory in (room / ".ferry").glob("*"):
        down(directory)


def after_mirrormaker_1(room: Path) -> Mapping[str, str]:
    """As `clusters` under names that stay; a consumer group has copied the first half of each partition."""
    pair = _clusters(room)
    with (room / "mm2.properties").open("a", encoding="utf-8") as file:
        file.write("replication.policy.class = IdentityReplicationPolicy\n")
    _create(pair.target)
    consumer = Consumer({"bootstrap.servers": pair.source, "group.id": "mirror-maker-group", "enable.auto.commit": False, "log_level": 2})
    producer = Producer({"bootstrap.servers": pair.target, "log_level": 2})
    for topic in TOPICS:
        for partition in range(4):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=15)
            half = (low + high) // 2
            for number in range(half):
                producer.produce(topic, f"copied {number}".encode(), partition=partition)
            commit_offsets({"bootstrap.servers": pair.source}, "mirror-maker-group", {(topic, partition): half})
    consumer.close()
    producer.flush(30)
    return {}


def legacy(room: Path) -> Mapping[str, str]:
    """As `clusters`, with the two client files of the first MirrorMaker."""
    pair = _clusters(room)
    (room / "consumer.properties").write_text(f"bootstrap.servers={pair.source}\ngroup.id=mirror\nauto.offset.reset=earliest\n")
    (room / "producer.properties").write_text(f"bootstrap.servers={pair.target}\n")
    return {}


STAGES: Mapping[str, Stage] = {
    "clusters": clusters,
    "a copy": copied,
    "two clusters that have the same topics": both_ways,
    "a copy, and the way back": copied_both_ways,
    "an Airflow": airflow,
    "after MirrorMaker 2": after_mirrormaker,
    "Ferry after MirrorMaker 2": ferry_after_mirrormaker,
    "after MirrorMaker 1": after_mirrormaker_1,
    "MirrorMaker 1's files": legacy,
}


def _clusters(room: Path) -> SandboxStatus:
    directory = room / ".ferry" / "stage"
    down(directory)
    pair = up(directory)
    _create(pair.source)
    _produce(pair.source)
    (room / "mm2.properties").write_text(PROPERTIES.format(source=pair.source, target=pair.target))
    return pair


def _ferry(room: Path, command: str, *options: str) -> None:
    subprocess.run(
        [room / ".venv/bin/ferry", command, "mm2.properties", "--flow", "A->B", *options], cwd=room, check=True, capture_output=True
    )


def _produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 2})
    for number in range(RECORDS):
        for topic in TOPICS:
            producer.produce(topic, f"{topic} {number}".encode(), key=f"key-{number % 100}".encode())
    if left := producer.flush(30):
        raise TimeoutError(f"{left} records of the stage were not written")


def _create(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    for future in client.create_topics([NewTopic(name, 4, 1) for name in TOPICS]).values():
        future.result()


def _ends(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "stage", "log_level": 2})
    try:
        found = consumer.list_topics(timeout=15).topics.get(topic)
        partitions = [TopicPartition(topic, number) for number in found.partitions] if found else []
        return sum(consumer.get_watermark_offsets(partition, timeout=15)[1] for partition in partitions)
    except KafkaException:  # a topic that was created just now has no leader yet
        return 0
    finally:
        consumer.close()
