"""Fixtures over real brokers. A missing Java is an error: nothing is skipped."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ferry.config import Flow, load_config
from ferry.sandbox import SandboxCluster

# Tests write records with old timestamps, which time-based retention would delete within the session.
FOREVER = {"log.retention.ms": "-1"}

ClusterFactory = Callable[..., SandboxCluster]
TopicFactory = Callable[..., str]
ConfigFile = Callable[..., Path]
FlowFactory = Callable[..., Flow]


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, SandboxCluster]]:
    """One source and one target cluster for the whole session."""
    directory = tmp_path_factory.mktemp("clusters")
    with ThreadPoolExecutor(2) as pool:
        source, target = pool.map(lambda name: SandboxCluster.start(directory / name, name, properties=FOREVER), ("source", "target"))
    yield source, target
    source.stop()
    target.stop()


@pytest.fixture(scope="session")
def source_cluster(clusters: tuple[SandboxCluster, SandboxCluster]) -> SandboxCluster:
    """The cluster that is copied from."""
    return clusters[0]


@pytest.fixture(scope="session")
def target_cluster(clusters: tuple[SandboxCluster, SandboxCluster]) -> SandboxCluster:
    """The cluster that is copied to."""
    return clusters[1]


@pytest.fixture
def cluster_factory(tmp_path: Path) -> Iterator[ClusterFactory]:
    """Extra clusters for tests that kill, restrict or format them: `cluster_factory(properties=…, features=…)`."""
    started: list[SandboxCluster] = []
    numbers = itertools.count()

    def start(properties: Mapping[str, str] | None = None, **options: object) -> SandboxCluster:
        name = f"extra{next(numbers)}"
        cluster = SandboxCluster.start(tmp_path / name, name, properties=FOREVER | dict(properties or {}), **options)  # type: ignore[arg-type]
        started.append(cluster)
        return cluster

    yield start
    for cluster in started:
        cluster.stop()


@pytest.fixture
def topic_factory() -> TopicFactory:
    """A new topic with a unique name on a cluster: `topic_factory(cluster, partitions=2, config={…}, name=…)`."""

    def create(cluster: SandboxCluster, *, partitions: int = 1, config: Mapping[str, str] | None = None, name: str | None = None) -> str:
        topic = name or f"t-{secrets.token_hex(4)}"
        client = AdminClient({"bootstrap.servers": cluster.bootstrap})
        client.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))])[topic].result(30)
        return topic

    return create


@pytest.fixture
def config_file(tmp_path: Path, request: pytest.FixtureRequest) -> ConfigFile:
    """An mm2.properties with a fresh source alias: `config_file("A->B.topics = x", source=cluster, target=cluster)`.

    `A->B` and `A.` in the extra lines stand for the fresh aliases; the session's clusters are the default.
    """
    alias = f"s{secrets.token_hex(4)}"

    def write(
        *lines: str, source: SandboxCluster | None = None, target: SandboxCluster | None = None, name: str = "mm2.properties"
    ) -> Path:
        source = source or request.getfixturevalue("source_cluster")
        target = target or request.getfixturevalue("target_cluster")
        text = [f"clusters = {alias}, B", f"{alias}.bootstrap.servers = {source.bootstrap}", f"B.bootstrap.servers = {target.bootstrap}"]
        text += [f"{alias}->B.enabled = true", "replication.factor = 1"]
        text += [
            line.replace("A->B", f"{alias}->B", 1)
            if line.startswith("A->B")
            else line.replace("A.", f"{alias}.", 1)
            if line.startswith("A.")
            else line
            for line in lines
        ]
        path = tmp_path / name
        path.write_text("\n".join(text) + "\n", encoding="latin-1")
        return path

    return write


@pytest.fixture
def flow_factory(config_file: ConfigFile) -> FlowFactory:
    """The one flow of such a config file; called again it is the same flow with other settings."""

    def load(*lines: str, **clusters: SandboxCluster) -> Flow:
        return load_config(config_file(*lines, **clusters)).flows[0]

    return load


@pytest.fixture
def produce() -> Callable[..., None]:
    """Append records: `produce(cluster, topic, [(partition, key, value), …], **producer settings)`."""

    def append(cluster: SandboxCluster, topic: str, records: list[tuple[int, bytes | None, bytes | None]], **settings: object) -> None:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, **settings})
        for partition, key, value in records:
            producer.produce(topic, value=value, key=key, partition=partition)
            producer.poll(0)
        assert producer.flush(60) == 0

    return append
