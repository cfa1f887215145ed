"""A target that refuses every request of a transaction, and what compares such a copy: readers that share no code with Ferry."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.waiting import until
from tools.kafka import SandboxCluster, read_all
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.listener import proxied_properties
from tools.proxy.rules import ADD_OFFSETS_TO_TXN, ADD_PARTITIONS_TO_TXN, END_TXN, INIT_PRODUCER_ID, TXN_OFFSET_COMMIT, Action, Rule
from tools.proxy.service import Service

from ferry.clusters.error_codes import CODES
from ferry.config import Flow
from ferry.ledger.reading import read_receipts
from ferry.sandbox.ports import free_ports
from ferry.syncs.translated_groups import translated_groups
from ferry.verify import reasons
from ferry.verify.range_runner import verify_inline
from ferry.verify.request import VerifyRequest
from ferry.verify.verifying import verify
from ferry.wire.ranges import Ranges, size, union

REFUSING = Service(transactions=CODES["TRANSACTIONAL_ID_AUTHORIZATION_FAILED"])
PARTITIONS, GROUPS = 3, 8
# FindCoordinator, with key type 1 for the transaction coordinator, is asked with the name of an id, which a Produce request may hold too.
ONLY_IN_TRANSACTIONS = (ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT)


class Target(NamedTuple):
    """The cluster behind, and the proxy before it; `bootstrap` is the proxy's."""

    cluster: SandboxCluster
    proxy: BrokerProxy

    @property
    def bootstrap(self) -> str:
        return self.proxy.bootstrap


@pytest.fixture(scope="session")
def _proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    behind, advertised = free_ports(2)
    directory: Path = tmp_path_factory.mktemp("plain")
    with (
        SandboxCluster.start(directory, "plain", properties=proxied_properties(behind, advertised)) as cluster,
        BrokerProxy(behind, advertised) as proxy,
    ):
        until(lambda: len(AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=10).brokers) == 1)
        yield Target(cluster, proxy)


@pytest.fixture
def target(_proxied: Target) -> Iterator[Target]:
    """It refuses transactions. At the end of the test none of its requests was one."""
    _proxied.proxy.service = REFUSING
    before = _proxied.proxy.seen
    named = _proxied.proxy.add(Rule(INIT_PRODUCER_ID, Action.DELAY_REQUEST, times=None, containing=b"ferry-"))
    yield _proxied
    _proxied.proxy.remove(named)
    since = _proxied.proxy.seen - before
    assert ([api for api in ONLY_IN_TRANSACTIONS if since[api]], named.hits) == ([], 0)


@pytest.fixture
def topic(source_cluster: SandboxCluster, topic_factory: Callable[..., str]) -> str:
    return topic_factory(source_cluster, partitions=PARTITIONS)


@pytest.fixture
def fill(source_cluster: SandboxCluster, topic: str) -> Callable[[int], None]:
    """Numbered records of a KB, in turns to each partition."""
    numbers = iter(range(1 << 30))

    def produce(count: int) -> None:
        producer = Producer({"bootstrap.servers": source_cluster.bootstrap, "linger.ms": 5, "batch.size": 50_000})
        for _ in range(count):
            number = next(numbers)
            producer.produce(topic, value=f"{number} ".encode().ljust(1_000, b"x"), partition=number % PARTITIONS)
            producer.poll(0)
        assert producer.flush(60) == 0

    return produce


class Copy(NamedTuple):
    """What a flow has copied of `topic`, as a client of librdkafka reads it."""

    flow: Flow
    topic: str
    source: SandboxCluster
    target: SandboxCluster

    @property
    def remote(self) -> str:
        return f"{self.flow.source.alias}.{self.topic}"

    def repeated(self) -> dict[int, Ranges]:
        """By partition, where the ledger says that records are on the target that were copied once more."""
        receipts = read_receipts(self.flow)
        return {
            number: union(span for receipt in receipts if receipt.partition == number for span in receipt.repeated)
            for number in range(PARTITIONS)
        }

    def assert_bounded(self) -> int:
        """Every record is there, in order, and what is there twice is where the ledger says so. Returns how many records those are."""
        upstream, downstream = read_all(self.source.bootstrap, self.topic), read_all(self.target.bootstrap, self.remote)
        repeated, twice = self.repeated(), 0
        for number, (records, copies) in enumerate(zip(upstream, downstream, strict=True)):
            told = [copy for copy in copies if any(start <= copy.offset < end for start, end in repeated[number])]
            once = [copy.value for copy in copies if copy not in told]
            assert once == [record.value for record in records]
            assert {copy.value for copy in told} <= {record.value for record in records}
            assert len(told) == size(repeated[number])
            twice += len(told)
        return twice

    def assert_verified(self) -> None:
        """Ferry's own verify finds no difference, and names exactly what is there twice."""
        report = verify(self.flow, VerifyRequest(self.flow.name, "proof"), verify_inline, lambda _: None)
        assert (report.failed, report.differences) == ((), ())
        named: dict[int, list[tuple[int, int]]] = {number: [] for number in range(PARTITIONS)}
        for entry in report.not_covered:
            assert entry.reason == reasons.REPEATED
            named[entry.partition].append((entry.start, entry.end))
        assert {number: union(spans) for number, spans in named.items()} == self.repeated()

    def commit_groups(self, dice: random.Random) -> dict[str, dict[int, int]]:
        """Groups of the source at random offsets."""
        placed = {f"{self.topic}-{name}": {} for name in range(GROUPS)}
        for group, offsets in placed.items():
            consumer = Consumer({"bootstrap.servers": self.source.bootstrap, "group.id": group, "enable.auto.commit": False})
            for number in range(PARTITIONS):
                _, end = consumer.get_watermark_offsets(TopicPartition(self.topic, number), timeout=30)
                offsets[number] = dice.randint(0, end)
            consumer.commit(offsets=[TopicPartition(self.topic, *place) for place in offsets.items()], asynchronous=False)
            consumer.close()
        return placed

    def assert_never_after(self, placed: dict[str, dict[int, int]]) -> int:
        """From where a group is translated to, everything can be read that it had not read. Returns how many places are exact."""
        upstream, downstream = read_all(self.source.bootstrap, self.topic), read_all(self.target.bootstrap, self.remote)
        exact = 0
        for position in translated_groups(self.flow, placed).positions:
            offset = placed[position.group][position.partition]
            assert (position.upstream_offset, position.problem) == (offset, "")
            assert position.translation is not None
            unread = [record.value for record in upstream[position.partition] if record.offset >= offset]
            read = [record.value for record in downstream[position.partition] if record.offset >= position.translation.image]
            assert set(read) >= set(unread)
            exact += position.translation.exact
            assert read == unread or not position.translation.exact
        return exact


@pytest.fixture
def flow(flow_factory: Callable[..., Flow], topic: str, target: Target, copy_only: tuple[str, ...]) -> Flow:
    lines = (f"A->B.topics = {topic}", "A->B.transaction.producer = false", "A->B.ferry.transaction.mb = 1", "A->B.ferry.lanes = 2")
    return flow_factory(*lines, *copy_only, target=target)


@pytest.fixture
def copy(flow: Flow, topic: str, source_cluster: SandboxCluster, target: Target) -> Copy:
    return Copy(flow, topic, source_cluster, target.cluster)
