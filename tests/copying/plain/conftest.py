"""A target that refuses every request of a transaction, and what compares such a copy: readers that share no code with Ferry."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.conftest import Lab
from tests.opened import read_receipts, translated_groups, verify
from tests.proxied import proxied_cluster
from tools.kafka import SandboxCluster, read_all
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.rules import ADD_OFFSETS_TO_TXN, ADD_PARTITIONS_TO_TXN, END_TXN, INIT_PRODUCER_ID, TXN_OFFSET_COMMIT, Action, Rule
from tools.proxy.service import Service

from ferry.clusters.net.error_codes import CODES
from ferry.config import Flow
from ferry.ledger.receipts import Receipt
from ferry.verify import reasons
from ferry.verify.range_runner import verify_inline
from ferry.verify.request import VerifyRequest
from ferry.wire.ranges import NO_END, Ranges, end_of_range_at, union, within

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
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with proxied_cluster(tmp_path_factory.mktemp("plain")) as pair:
        yield Target(*pair)


@pytest.fixture
def target(proxied: Target) -> Iterator[Target]:
    """It refuses transactions. At the end of the test none of its requests was one."""
    proxied.proxy.service = REFUSING
    before = proxied.proxy.seen
    named = proxied.proxy.add(Rule(INIT_PRODUCER_ID, Action.DELAY_REQUEST, times=None, containing=b"ferry-"))
    yield proxied
    proxied.proxy.remove(named)
    since = proxied.proxy.seen - before
    assert ([api for api in ONLY_IN_TRANSACTIONS if since[api]], named.hits) == ([], 0)


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=PARTITIONS)


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


class Place(NamedTuple):
    """Where a group stood on the source, and its translation."""

    partition: int
    offset: int
    image: int
    exact: bool


def recorded_end(receipts: Iterable[Receipt], partition: int) -> int:
    """Where the partition's last receipt ends on the target. What a killed run had sent may arrive after it at any time."""
    return max([0, *(receipt.downstream_end for receipt in receipts if receipt.partition == partition)])


class Copy(NamedTuple):
    """What a flow has copied of `topic`, as a client of librdkafka reads it."""

    flow: Flow
    topic: str
    source: SandboxCluster
    target: SandboxCluster

    @property
    def remote(self) -> str:
        return f"{self.flow.source.alias}.{self.topic}"

    def told(self) -> dict[int, Ranges]:
        """By partition, where the ledger says that records are on the target twice, or may be: these are after its last receipt."""
        receipts = read_receipts(self.flow)
        found = {}
        for number in range(PARTITIONS):
            spans = (span for receipt in receipts if receipt.partition == number for span in receipt.repeated)
            found[number] = union([*spans, (recorded_end(receipts, number), NO_END)])
        return found

    def assert_bounded(self) -> int:
        """Every record is there, in order, and what is there twice is where the ledger says so. Returns how many records those are."""
        told = self.told()
        upstream, downstream = read_all(self.source.bootstrap, self.topic), read_all(self.target.bootstrap, self.remote)
        twice = 0
        for number, (records, copies) in enumerate(zip(upstream, downstream, strict=True)):
            more = {copy.offset for copy in copies if end_of_range_at(told[number], copy.offset) > copy.offset}
            assert [copy.value for copy in copies if copy.offset not in more] == [record.value for record in records]
            assert {copy.value for copy in copies} == {record.value for record in records}
            twice += len(more)
        return twice

    def assert_verified(self) -> None:
        """Ferry's own verify finds no difference, and names what is there twice."""
        told = self.told()
        report = verify(self.flow, VerifyRequest(self.flow.name, "proof"), verify_inline, lambda _: None)
        assert (report.failed, report.differences) == ((), ())
        assert {entry.reason for entry in report.not_covered} <= {reasons.REPEATED, reasons.UNRECORDED}
        for number, spans in told.items():
            named = union((entry.start, entry.end) for entry in report.not_covered if entry.partition == number)
            assert within(named, 0, spans[-1][0]) == spans[:-1]

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

    def places(self, placed: dict[str, dict[int, int]]) -> list[Place]:
        """Where these groups are translated to, now."""
        found = []
        for position in translated_groups(self.flow, placed).positions:
            offset = placed[position.group][position.partition]
            assert (position.upstream_offset, position.problem) == (offset, "")
            assert position.translation is not None
            found.append(Place(position.partition, offset, position.translation.image, position.translation.exact))
        assert len(found) == len(placed) * PARTITIONS
        return found

    def assert_never_after(self, places: list[Place]) -> None:
        """From each place on, everything can be read that the group had not read."""
        upstream, downstream = read_all(self.source.bootstrap, self.topic), read_all(self.target.bootstrap, self.remote)
        for place in places:
            unread = {record.value for record in upstream[place.partition] if record.offset >= place.offset}
            assert {record.value for record in downstream[place.partition] if record.offset >= place.image} >= unread, place

    def assert_exact(self, places: list[Place]) -> None:
        """From each exact place to the last receipt's end, the group reads what it would have read next; if nothing was copied since."""
        upstream, downstream = read_all(self.source.bootstrap, self.topic), read_all(self.target.bootstrap, self.remote)
        receipts = read_receipts(self.flow)
        for place in (place for place in places if place.exact):
            unread = [record.value for record in upstream[place.partition] if record.offset >= place.offset]
            end = recorded_end(receipts, place.partition)
            copies = [record.value for record in downstream[place.partition] if place.image <= record.offset < end]
            assert copies == unread, place


@pytest.fixture
def flow(flow_factory: Callable[..., Flow], topic: str, target: Target, copy_only: tuple[str, ...]) -> Flow:
    lines = (f"A->B.topics = {topic}", "A->B.transaction.producer = false", "A->B.ferry.transaction.mb = 1", "A->B.ferry.lanes = 2")
    return flow_factory(*lines, *copy_only, target=target)


@pytest.fixture
def copy(flow: Flow, topic: str, source_cluster: SandboxCluster, target: Target) -> Copy:
    return Copy(flow, topic, source_cluster, target.cluster)


@pytest.fixture
def path(flow: Flow, tmp_path: Path) -> Path:
    return tmp_path / "mm2.properties"
