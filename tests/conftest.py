"""Fixtures over real brokers. A missing Java is an error: nothing is skipped."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from hypothesis import HealthCheck, settings
from tests.both_clusters import FOREVER, both_clusters
from tests.waiting import NEVER_SECONDS, until
from tools.kafka import SandboxCluster

from ferry.config import Flow, load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.ledger.open_flow import open_flow
from ferry.ledger.run_report import RunReport
from ferry.pipeline.run import copied

# What `A` and `B` stand for at the start of a config line: `A->B.topics`, `B->A.enabled`, `A.client.id`.
ALIASES = re.compile(r"^([AB])(?:->([AB]))?(?=\.)")

# On two cores that other work shares, drawing an example now and then takes longer than hypothesis allows. A test starts from the same seed
# each time, so it seldom fails by chance (hypothesis also draws constants of imported modules). With a number of examples (make fuzz) it
# draws new ones.
settings.register_profile(
    "ferry",
    deadline=None,
    max_examples=int(os.environ.get("FERRY_HYPOTHESIS_EXAMPLES", "100")),
    derandomize=not {"FERRY_HYPOTHESIS_EXAMPLES", "FERRY_FUZZ_EXAMPLES"} & os.environ.keys(),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ferry")

# A shell ignores Ctrl-C in what it starts in the background. The tests of Ctrl-C would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ClusterFactory = Callable[..., SandboxCluster]
TopicFactory = Callable[..., str]
ConfigFile = Callable[..., Path]
FlowFactory = Callable[..., Flow]
RunFlow = Callable[..., RunReport]
GroupMember = Callable[..., AbstractContextManager[Consumer]]
# A file with a test of the first marker begins first: whoever begins a long file at the end keeps all others waiting.
SLOWEST_FIRST = ("airflow", "spark", "faults", "browser", "long", "brokers")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files in the order in which workers shall begin them."""
    ranks: dict[Path, int] = {}
    for item in items:
        rank = next((place for place, name in enumerate(SLOWEST_FIRST) if item.get_closest_marker(name)), len(SLOWEST_FIRST))
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: ranks[item.path])


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, SandboxCluster]]:
    """One source and one target cluster for the whole session, started at the same time."""
    directory = tmp_path_factory.mktemp("clusters")
    with both_clusters(directory) as pair:
        yield pair


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
    """Extra clusters for tests that kill, restrict or format them, stopped at the end of the test.

    `cluster_factory(properties=…, features=…, users=…, authorizer=…, java_options=…)`, as of SandboxCluster.start.
    """
    numbers = itertools.count()
    with ExitStack() as running:

        def start(properties: Mapping[str, str] | None = None, **options: object) -> SandboxCluster:
            name = f"extra{next(numbers)}"
            settings = FOREVER | dict(properties or {})
            return running.enter_context(SandboxCluster.start(tmp_path / name, name, properties=settings, **options))  # type: ignore[arg-type]

        yield start


def _answered(client: AdminClient, ends: Mapping[TopicPartition, OffsetSpec]) -> bool:
    try:
        return all(future.result(30).offset >= 0 for future in client.list_offsets(dict(ends)).values())
    except KafkaException:
        return False


@pytest.fixture
def topic_factory() -> TopicFactory:
    """A new topic with a unique name on a cluster: `topic_factory(cluster, partitions=2, config={…}, name=…)`."""

    def create(cluster: SandboxCluster, *, partitions: int = 1, config: Mapping[str, str] | None = None, name: str | None = None) -> str:
        topic = name or f"t-{secrets.token_hex(4)}"
        client = AdminClient(cluster.client_settings())
        client.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))])[topic].result(30)
        # Until every leader answers. A producer without idempotence that a broker refuses (it is in Metadata, but does not lead yet)
        # tries again, and its records change their order.
        ends = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
        until(lambda: _answered(client, ends), lambda: f"not every partition of {topic} got a leader")
        return topic

    return create


@pytest.fixture
def config_file(tmp_path: Path, request: pytest.FixtureRequest) -> ConfigFile:
    """An mm2.properties with aliases of this test's own: `config_file("A->B.topics = x", source=cluster, target=cluster)`.

    `A` and `B` at the start of a line stand for the aliases; the session's clusters are the default. No two tests share internal topics.
    """
    aliases = {"A": f"a{secrets.token_hex(4)}", "B": f"b{secrets.token_hex(4)}"}

    def own(found: re.Match[str]) -> str:
        return "->".join(aliases[alias] for alias in found.groups() if alias)

    def write(
        *lines: str, source: SandboxCluster | None = None, target: SandboxCluster | None = None, name: str = "mm2.properties"
    ) -> Path:
        source = source or request.getfixturevalue("source_cluster")
        target = target or request.getfixturevalue("target_cluster")
        text = [f"clusters = {aliases['A']}, {aliases['B']}", "replication.factor = 1", "ferry.internal.topics.replication.factor = 1"]
        given = [f"A.bootstrap.servers = {source.bootstrap}", f"B.bootstrap.servers = {target.bootstrap}", "A->B.enabled = true"]
        if not any("heartbeats" in line for line in lines):
            given += ["B->A.emit.heartbeats.enabled = false"]  # or the source that tests share would get a heartbeats topic
        if not any("heartbeats" in line and "emit.heartbeats.enabled = false" not in line for line in lines):
            given += ["A->B.heartbeats.replication.enabled = false"]  # another test may have left heartbeats on that source
        given += lines
        text += [ALIASES.sub(own, line) for line in given]
        path = tmp_path / name
        path.write_text("\n".join(text) + "\n", encoding="latin-1")
        return path

    return write


@pytest.fixture
def copy_only() -> tuple[str, ...]:
    """Lines of a config for tests that are about the copy alone: no syncs."""
    return (
        "sync.topic.configs.enabled = false",
        "sync.topic.acls.enabled = false",
        "emit.heartbeats.enabled = false",
        "emit.checkpoints.enabled = false",
        "emit.offset-syncs.enabled = false",
    )


@pytest.fixture
def flow_factory(config_file: ConfigFile) -> FlowFactory:
    """The one flow of such a config file; called again it is the same flow with other settings."""

    def load(*lines: str, **clusters: SandboxCluster) -> Flow:
        return load_config(config_file(*lines, **clusters)).flows[0]

    return load


@dataclass(frozen=True)
class Lab:
    """The session's two clusters, and what a test does with them; each field as of the fixture that gives it."""

    source: SandboxCluster
    target: SandboxCluster
    topic: TopicFactory
    config: ConfigFile
    flow: FlowFactory
    run: RunFlow
    produce: Callable[..., None]
    copy_only: tuple[str, ...]


@pytest.fixture
def lab(
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    topic_factory: TopicFactory,
    config_file: ConfigFile,
    flow_factory: FlowFactory,
    run_flow: RunFlow,
    produce: Callable[..., None],
    copy_only: tuple[str, ...],
) -> Lab:
    return Lab(source_cluster, target_cluster, topic_factory, config_file, flow_factory, run_flow, produce, copy_only)


@pytest.fixture
def source_producer(source_cluster: SandboxCluster) -> Iterator[Producer]:
    """A producer on the source cluster; all that it was given has arrived at the end of the test."""
    producer = Producer({**source_cluster.client_settings(), "linger.ms": 5, "acks": "all"})
    yield producer
    assert producer.flush(60) == 0


@pytest.fixture
def produce() -> Callable[..., None]:
    """Append records: `produce(cluster, topic, [(partition, key, value), …], **producer settings)`."""

    def append(cluster: SandboxCluster, topic: str, records: list[tuple[int, bytes | None, bytes | None]], **settings: object) -> None:
        producer = Producer({**cluster.client_settings(), "linger.ms": 5, **settings})
        for partition, key, value in records:
            producer.produce(topic, value=value, key=key, partition=partition)
            producer.poll(0)
        assert producer.flush(60) == 0

    return append


@pytest.fixture
def group_member() -> GroupMember:
    """A consumer that is in a group: `with group_member(cluster, group, topic, **settings) as consumer`."""

    @contextmanager
    def join(cluster: SandboxCluster, group: str, topic: str, **settings: object) -> Iterator[Consumer]:
        consumer = Consumer({**cluster.client_settings(), "group.id": group, "enable.auto.commit": False, **settings})
        joined: list[object] = []
        consumer.subscribe([topic], on_assign=lambda *_: joined.append(True))
        try:
            deadline = time.monotonic() + NEVER_SECONDS
            while not joined:
                record = consumer.poll(0.1)
                if record is not None and record.error() is None:  # it belongs to the test
                    consumer.seek(TopicPartition(record.topic(), record.partition(), record.offset()))
                assert time.monotonic() < deadline, "never assigned"
            yield consumer
        finally:
            consumer.close()

    return join


@pytest.fixture
def share_group(target_cluster: SandboxCluster, topic_factory: TopicFactory) -> str:
    """A share group (KIP-932) with a member on the target: librdkafka has none, so the one request that joins is written here."""
    group, topic = f"share-{secrets.token_hex(4)}", topic_factory(target_cluster)

    def text(value: str) -> bytes:
        return bytes([len(value) + 1]) + value.encode()

    # ShareGroupHeartbeat version 1: group, member, epoch 0 (join), no rack, one topic; all lengths are compact.
    body = text(group) + text("member-of-the-share-group-1") + struct.pack(">i", 0) + b"\0" + b"\2" + text(topic) + b"\0"
    request = struct.pack(">hhih", 76, 1, 1, 4) + b"test" + b"\0" + body
    host, port = target_cluster.bootstrap.split(":")
    # Whoever asks for a coordinator makes the broker create the topic of the groups; it is up a moment later.
    client = AdminClient(target_cluster.client_settings())
    with suppress(KafkaException):
        client.describe_consumer_groups([group])[group].result(30)
    deadline = time.monotonic() + NEVER_SECONDS
    code = -1
    while code != 0:
        assert time.monotonic() < deadline, f"error {code}"
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            (code,) = struct.unpack(">h", connection.recv(4096)[13:15])
    return group


@pytest.fixture
def run_flow() -> RunFlow:
    """One whole run: `run_flow(flow, until=…, since=…)`; the report of what it did."""
    numbers = itertools.count(1)

    def run(flow: Flow, *, since: datetime | None = None, runner: object = None, **options: Any) -> RunReport:
        request = RunRequest(flow.name, f"run-{next(numbers)}-{secrets.token_hex(3)}", since=since, backfill=since is not None, **options)
        with open_flow(flow) as opened:
            return copied(opened, request, lambda run: run.copy(runner or InlineLaneRunner(), lambda _: None))

    return run
