"""Groups at many random positions of logs of every kind: what a consumer reads at the translated position is what it would have read next.

Each log is read once by librdkafka, with offsets, and suffixes are compared; at a sample of the positions real consumers are started.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ferry.clusters.consumer_groups import ConsumerGroups
from ferry.clusters.group_model import CommittedOffset
from ferry.clusters.partitions import TopicPartition
from ferry.config import Cluster, Flow
from ferry.mirroring.translated_groups import translated_groups
from ferry.reporting.run_report import RunReport
from ferry.sandbox import SandboxCluster, read_all
from ferry.sandbox.reading import RecordSeen, partition_bounds, read_partition
from ferry.translation.model import Inexact, TranslatedPosition

pytestmark = pytest.mark.brokers

GROUPS = 120
BACK_GROUPS = 40
SAMPLE = 24
SOME_DAY = datetime(2026, 1, 5, tzinfo=UTC)
# The ends of the logs, and beyond.
BEYOND = 12
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
    "segment.ms": "100",
}
RunFlow = Callable[..., RunReport]


@dataclass
class Log:
    """One source partition: every committed record that it ever held and did not lose, and up to where it was copied."""

    records: dict[int, tuple[object, ...]] = field(default_factory=dict)
    copied_to: int = 0
    end: int = 0

    def from_offset(self, offset: int) -> list[tuple[object, ...]]:
        return [content for at, content in sorted(self.records.items()) if offset <= at < self.copied_to]


@dataclass
class Histories:
    """The topics of one flow, each with a history of its own."""

    flow: Flow
    source: SandboxCluster
    target: SandboxCluster
    topics: dict[str, str]
    number: int = 0
    logs: dict[tuple[str, int], Log] = field(default_factory=dict)

    def fill(self, name: str, count: int, *, partitions: int = 1, keys: int = 1_000_000, **settings: object) -> None:
        producer = Producer({**self.source.client_settings(), "linger.ms": 5, **settings})
        for index in range(count):
            self._produce(producer, name, index % partitions, keys)
        assert producer.flush(60) == 0

    def in_transactions(self, name: str, rounds: int) -> None:
        """Every third transaction is aborted."""
        producer = Producer({**self.source.client_settings(), "transactional.id": f"tx-{self.topics[name]}"})
        producer.init_transactions(30)
        for number in range(rounds):
            producer.begin_transaction()
            for _ in range(7):
                self._produce(producer, name, 0)
            producer.flush(30)
            (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)(30)
        # A commit returns before its markers are written; until then a run ends before those records.
        place = KafkaPartition(self.topics[name], 0)
        levels = ("read_committed", "read_uncommitted")
        readers = [Consumer({**self.source.client_settings(), "group.id": "ends", "isolation.level": level}) for level in levels]
        deadline = time.monotonic() + 30
        while len({reader.get_watermark_offsets(place, timeout=15)[1] for reader in readers}) > 1:
            assert time.monotonic() < deadline
        for reader in readers:
            reader.close()

    def _produce(self, producer: Producer, name: str, partition: int, keys: int = 1_000_000) -> None:
        self.number += 1
        moment = int((SOME_DAY + timedelta(seconds=self.number)).timestamp() * 1000)
        value = f"{self.number}".encode()
        producer.produce(self.topics[name], value, f"k{self.number % keys}".encode(), partition=partition, timestamp=moment)

    def expire(self, name: str, end: int, cluster: SandboxCluster | None = None) -> None:
        topic = self.topics[name] if cluster is None else f"{self.flow.source.alias}.{self.topics[name]}"
        client = AdminClient((cluster or self.source).client_settings())
        for future in client.delete_records([KafkaPartition(topic, 0, end)]).values():
            future.result(30)

    def compact(self, name: str, before: int) -> None:
        """Wait until the cleaner has left holes, then let it leave the log alone."""
        deadline = time.monotonic() + 30
        while len(read_all(self.source.bootstrap, self.topics[name])[0]) >= before:
            assert time.monotonic() < deadline
            self.fill(name, 1)  # rolls the segment
        self.configure(ResourceType.TOPIC, self.topics[name], "cleanup.policy", "delete")

    def configure(self, kind: ResourceType, name: str, key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        client = AdminClient(self.source.client_settings())
        client.incremental_alter_configs([resource])[resource].result(30)

    def look(self, *, copied: bool = False) -> None:
        """Keep what the source holds now; with `copied` all of it has been copied."""
        for topic in self.topics.values():
            for partition, bounds in partition_bounds(self.source.bootstrap, topic).items():
                log = self.logs.setdefault((topic, partition), Log())
                log.end = bounds[1]
                log.copied_to = bounds[1] if copied else log.copied_to
                log.records |= {record.offset: record.content for record in read_partition(self.source.bootstrap, topic, partition, bounds)}

    def copies(self) -> dict[tuple[str, int], list[RecordSeen]]:
        found = {}
        for topic in self.topics.values():
            partitions = read_all(self.target.bootstrap, f"{self.flow.source.alias}.{topic}")
            found.update({(topic, partition): records for partition, records in enumerate(partitions)})
        return found


@pytest.fixture
def histories(
    flow_factory: Callable[..., Flow],
    topic_factory: Callable[..., str],
    run_flow: RunFlow,
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
) -> Iterator[Histories]:
    widths = {"plain": 2, "transactional": 1, "compacted": 1, "empty": 1, "expired": 1, "gone": 1, "lossy": 1, "shrunk": 1, "late": 1}
    topics = {
        name: topic_factory(source_cluster, partitions=width, config=COMPACTED if name == "compacted" else None)
        for name, width in widths.items()
    }
    early = flow_factory(f"A->B.topics = {','.join(topics.values())}")
    late = flow_factory(f"A->B.topics = {topics['late']}", "A->B.ferry.start = latest")
    made = Histories(early, source_cluster, target_cluster, topics)
    made.configure(ResourceType.BROKER, "1", "log.cleaner.backoff.ms", "100")
    for name in ("plain", "expired", "gone", "lossy", "shrunk", "late"):
        made.fill(name, 60, partitions=widths[name], **{"batch.num.messages": 11})
    made.in_transactions("transactional", 10)
    made.fill("compacted", 400, keys=40)
    made.compact("compacted", 400)
    made.expire("expired", 60)
    run_flow(late)
    run_flow(early)
    made.look()
    for name in ("plain", "compacted", "gone", "shrunk", "late"):
        made.fill(name, 40, partitions=widths[name])
    made.in_transactions("transactional", 10)
    made.fill("lossy", 40)
    made.expire("lossy", 80)
    made.look()
    run_flow(early)
    run_flow(late, since=SOME_DAY, until=SOME_DAY + timedelta(days=1))  # by now all of `late` is history: what lay before its start
    made.look(copied=True)
    made.expire("gone", 100)
    made.expire("shrunk", 47, target_cluster)
    for name in ("plain", "transactional"):  # not copied
        made.fill(name, 9, partitions=widths[name])
    made.look()
    yield made
    made.configure(ResourceType.BROKER, "1", "log.cleaner.backoff.ms", "15000")


def commit(cluster: Cluster, groups: dict[str, dict[TopicPartition, int]]) -> None:
    wanted = {group: {key: CommittedOffset(offset) for key, offset in offsets.items()} for group, offsets in groups.items()}
    with ConsumerGroups(cluster) as target:
        assert all(refused == {} for refused in target.commit_all(wanted).values())


def contents(records: Iterable[RecordSeen]) -> list[tuple[object, ...]]:
    return [record.content for record in records]


def test_a_consumer_goes_on_just_where_it_was_in_both_directions(histories: Histories) -> None:
    check_forward(histories)
    check_back(histories)


def check_forward(histories: Histories) -> None:
    flow, logs, copies = histories.flow, histories.logs, histories.copies()
    chance = random.Random(20261121)
    named = {topic: name for name, topic in histories.topics.items()}
    places = [TopicPartition(*key) for key in sorted(logs)]

    def position(number: int, key: TopicPartition) -> int:
        log = logs[key]
        return (0, log.copied_to, log.end, log.end + 1)[number] if number < 4 else chance.randrange(log.end + BEYOND)

    groups = {f"{flow.source.alias}-{number}": {key: position(number, key) for key in places} for number in range(GROUPS)}
    commit(flow.source, groups)
    began = time.monotonic()
    found = translated_groups(flow, groups)
    assert time.monotonic() - began < 15
    assert len(found.positions) == GROUPS * len(places)

    reasons: dict[str, Counter[Inexact | None]] = {name: Counter() for name in histories.topics}
    for entry in found.positions:
        key, translation = (entry.topic, entry.partition), entry.translation
        assert translation is not None, entry
        offset = groups[entry.group][TopicPartition(*key)]
        wanted = logs[key].from_offset(offset)
        ahead = contents(record for record in copies[key] if record.offset >= translation.image)
        on_target = {record.content for record in copies[key]}
        assert {content for content in wanted if content in on_target} <= set(ahead)
        assert translation.exact == (ahead == wanted and offset <= logs[key].copied_to), (named[entry.topic], entry)
        reasons[named[entry.topic]][translation.reason] += 1
    # Where nothing went wrong, all that was copied is exact.
    for name in ("plain", "transactional", "compacted", "empty", "expired", "gone", "lossy"):
        assert set(reasons[name]) == {None, Inexact.AHEAD}, name
    assert set(reasons["shrunk"]) == {None, Inexact.AHEAD, Inexact.TARGET_EXPIRED}
    assert set(reasons["late"]) == {None, Inexact.AHEAD, Inexact.BACKFILLED}
    assert sum(count[None] for count in reasons.values()) > 500
    _start_consumers(histories, chance.sample(found.positions, SAMPLE))


def _start_consumers(histories: Histories, sample: Iterable[TranslatedPosition]) -> None:
    """Real consumers at both positions; the source's only where its log still holds what was copied."""
    for entry in sample:
        key, translation = (entry.topic, entry.partition), entry.translation
        assert translation is not None
        assert entry.upstream_offset is not None
        _, end = partition_bounds(histories.target.bootstrap, entry.remote_topic)[entry.partition]
        read = contents(read_partition(histories.target.bootstrap, entry.remote_topic, entry.partition, (translation.image, end)))
        if translation.exact:
            assert read == histories.logs[key].from_offset(entry.upstream_offset)
        start, _ = partition_bounds(histories.source.bootstrap, entry.topic)[entry.partition]
        if start <= entry.upstream_offset and translation.exact:
            bounds = (entry.upstream_offset, histories.logs[key].copied_to)
            assert read == contents(read_partition(histories.source.bootstrap, entry.topic, entry.partition, bounds))


def check_back(histories: Histories) -> None:
    flow, copies = histories.flow, histories.copies()
    chance = random.Random(7)
    remote = {f"{flow.source.alias}.{topic}": topic for topic in histories.topics.values()}
    places = {
        TopicPartition(name, partition): bounds
        for name in remote
        for partition, bounds in partition_bounds(histories.target.bootstrap, name).items()
    }
    begins = {
        (topic, partition): bounds[0]
        for topic in remote.values()
        for partition, bounds in partition_bounds(histories.source.bootstrap, topic).items()
    }
    groups = {
        f"{flow.target.alias}-{number}": {key: chance.randint(*bounds) if number else bounds[1] for key, bounds in places.items()}
        for number in range(BACK_GROUPS)
    }
    commit(flow.target, groups)
    found = translated_groups(flow, groups, reverse=True)
    reasons: dict[str, Counter[Inexact | None]] = {topic: Counter() for topic in remote.values()}
    for entry in found.positions:
        translation, key = entry.translation, (remote[entry.topic], entry.partition)
        assert translation is not None
        assert entry.remote_topic == key[0]
        offset = groups[entry.group][TopicPartition(entry.topic, entry.partition)]
        wanted = contents(record for record in copies[key] if record.offset >= offset)
        ahead = histories.logs[key].from_offset(translation.image)
        reasons[key[0]][translation.reason] += 1
        assert translation.image >= begins[key]
        assert translation.exact == (ahead == wanted), entry
        gone = {content for at, content in histories.logs[key].records.items() if at < begins[key]}
        assert set(wanted) <= set(ahead) | gone
    topics = histories.topics
    for name in ("plain", "transactional", "compacted", "empty", "expired"):
        assert set(reasons[topics[name]]) == {None}, name
    assert set(reasons[topics["gone"]]) == {None, Inexact.TARGET_EXPIRED}
