"""Source topics with a history of every kind: transactions, compaction, expiry. What a consumer of the source could ever read is kept.

Every record's value is a number that no other record has, and its timestamp grows with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.opened import open_groups
from tests.waiting import until
from tools.kafka import RecordSeen, SandboxCluster, read_all
from tools.kafka.reading import partition_bounds, read_partition

from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Cluster

SOME_DAY = datetime(2026, 1, 5, tzinfo=UTC)
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
    "segment.ms": "100",
}
# Nobody's transaction is open for longer.
ANSWER_SECONDS = 30.0

Content = tuple[object, ...]


@dataclass
class Log:
    """One source partition: every committed record that it ever held and did not lose, and up to where it was copied."""

    records: dict[int, Content] = field(default_factory=dict)
    copied_to: int = 0
    end: int = 0

    def from_offset(self, offset: int) -> list[Content]:
        """What a consumer at `offset` reads next, as far as it was copied."""
        return [content for at, content in sorted(self.records.items()) if offset <= at < self.copied_to]


@dataclass(kw_only=True)
class Histories:
    """The topics of one source by a name for what happened to them, each with a history of its own."""

    source: SandboxCluster
    topics: dict[str, str]
    number: int = 0
    logs: dict[tuple[str, int], Log] = field(default_factory=dict)

    def fill(self, name: str, count: int, *, partitions: int = 1, keys: int = 1_000_000, **settings: object) -> None:
        """Append `count` records, in turn to each partition."""
        producer = Producer({**self.source.client_settings(), "linger.ms": 5, **settings})
        for index in range(count):
            self._produce(producer, name, index % partitions, keys)
        assert producer.flush(60) == 0

    def in_transactions(self, name: str, rounds: int, size: int = 7) -> None:
        """Every third transaction is aborted."""
        producer = Producer({**self.source.client_settings(), "transactional.id": f"tx-{self.topics[name]}"})
        producer.init_transactions(30)
        for number in range(rounds):
            producer.begin_transaction()
            for _ in range(size):
                self._produce(producer, name, 0)
            producer.flush(30)
            (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)(30)
        # A commit returns before its markers are written; until then a run ends before those records.
        place = KafkaPartition(self.topics[name], 0)
        levels = ("read_committed", "read_uncommitted")
        readers = [Consumer({**self.source.client_settings(), "group.id": "ends", "isolation.level": level}) for level in levels]
        until(lambda: len({reader.get_watermark_offsets(place, timeout=15)[1] for reader in readers}) == 1)
        for reader in readers:
            reader.close()

    def _produce(self, producer: Producer, name: str, partition: int, keys: int = 1_000_000) -> None:
        self.number += 1
        moment = int((SOME_DAY + timedelta(seconds=self.number)).timestamp() * 1000)
        value = f"{self.number}".encode()
        producer.produce(self.topics[name], value, f"k{self.number % keys}".encode(), partition=partition, timestamp=moment)

    def expire(self, name: str, end: int) -> None:
        """Let everything before `end` leave the source's log."""
        delete_before(self.source, self.topics[name], end)

    def compact(self, name: str, before: int) -> None:
        """Wait until the cleaner has left holes, then let it leave the log alone."""
        while len(read_all(self.source.bootstrap, self.topics[name])[0]) >= before:
            self.fill(name, 1)  # rolls the segment
        self.configure(ResourceType.TOPIC, self.topics[name], "cleanup.policy", "delete")

    def configure(self, kind: ResourceType, name: str, key: str, value: str) -> None:
        """Set one config of a topic or broker of the source."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        client = AdminClient(self.source.client_settings())
        client.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS)

    def look(self, *, copied: bool = False) -> None:
        """Keep what the source holds now; with `copied` all of it has been copied."""
        for topic in self.topics.values():
            for partition, bounds in partition_bounds(self.source.bootstrap, topic).items():
                log = self.logs.setdefault((topic, partition), Log())
                log.end = bounds[1]
                log.copied_to = bounds[1] if copied else log.copied_to
                log.records |= {record.offset: record.content for record in read_partition(self.source.bootstrap, topic, partition, bounds)}


def delete_before(cluster: SandboxCluster, topic: str, end: int) -> None:
    """Let the log of a topic of one partition begin at `end`."""
    client = AdminClient(cluster.client_settings())
    for future in client.delete_records([KafkaPartition(topic, 0, end)]).values():
        future.result(ANSWER_SECONDS)


def commit(cluster: Cluster, groups: dict[str, dict[TopicPartition, int]]) -> None:
    """Make or move groups without members."""
    wanted = {group: {key: CommittedOffset(offset) for key, offset in offsets.items()} for group, offsets in groups.items()}
    with open_groups(cluster) as target:
        assert all(refused == {} for refused in target.commit_all(wanted).values())


def contents(records: Iterable[RecordSeen]) -> list[Content]:
    """What is compared of records."""
    return [record.content for record in records]
