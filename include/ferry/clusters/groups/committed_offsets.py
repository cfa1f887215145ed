"""Requests about committed offsets of groups: OffsetFetch, and the batches of OffsetCommit and TxnOffsetCommit.

Ferry does not read offsets with librdkafka: its ListConsumerGroupOffsets crashes the process when a coordinator answers with an error
(2.16: the response handler reaches for a consumer group that an admin client does not have).

A coordinator stores all offsets of one request as one batch of `__consumer_offsets`. If the batch exceeds `max.message.bytes` of that
topic, it stores none of them (CoordinatorRuntime.append, in older releases GroupMetadataManager.storeOffsets). Not every user may see that
limit, so Ferry does not ask for it: it begins with half of Kafka's default, and halves a request when the broker says that it is too large.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from kafka.protocol.consumer.group import OffsetCommitRequest, OffsetFetchRequest

from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.error_policy import TOO_MANY_OFFSETS
from ferry.clusters.net.partitions import TopicPartition, grouped, partitions_of

K = TypeVar("K", bound=tuple[str, int])
Offsets = Mapping[K, CommittedOffset]

# The newest versions that go by topic name; version 10 goes by topic id. Before version 8 a fetch names one group (KIP-709).
COMMIT_VERSION, FETCH_VERSION, SEVERAL_GROUPS = 9, 9, 8
# Half of what brokers allow by default.
BATCH_BYTES = 512 * 1024
# Size of a record without group, topic and metadata: framing, versions and lengths of key and value, offset, epoch, times, topic id.
RECORD_BYTES = 80


class GroupAnswer(NamedTuple):
    """The answer for one group: its error code (0: none), and by partition an error code and the offset (negative: there is none)."""

    error_code: int
    partitions: Mapping[TopicPartition, tuple[int, CommittedOffset]]


def fetch_request(groups: Sequence[str], partitions: Iterable[tuple[str, int]] | None = None, *, stable: bool) -> OffsetFetchRequest:
    """Asks for offsets of `groups` that one broker coordinates, for these partitions (None: all that the group has committed).

    `stable`: offsets of an undecided transaction are an error of their partition (KIP-447); otherwise the offsets before it are given.
    """
    group_type = OffsetFetchRequest.OffsetFetchRequestGroup
    wanted = None if partitions is None else grouped(partitions).items()

    def topics(kind: Any) -> list[Any] | None:
        return None if wanted is None else [kind(name=topic, partition_indexes=numbers) for topic, numbers in wanted]

    return OffsetFetchRequest(
        group_id=groups[0],
        topics=topics(OffsetFetchRequest.OffsetFetchRequestTopic),
        groups=[group_type(group_id=group, topics=topics(group_type.OffsetFetchRequestTopics)) for group in groups],
        require_stable=stable,
        max_version=FETCH_VERSION,
    )


def fetched_offsets(answer: Any, groups: Sequence[str]) -> dict[str, GroupAnswer]:
    """The answer for each of `groups`. A broker before version 8 answers for the first group only."""
    found = {entry.group_id: entry for entry in answer.groups} if answer.version >= SEVERAL_GROUPS else {groups[0]: answer}
    return {group: GroupAnswer(entry.error_code, _offsets(entry)) for group, entry in found.items()}


def _offsets(entry: Any) -> dict[TopicPartition, tuple[int, CommittedOffset]]:
    return {
        key: (part.error_code, CommittedOffset(part.committed_offset, part.committed_leader_epoch, part.metadata or ""))
        for key, part in partitions_of(entry.topics)
    }


def commit_request(group: str, offsets: Offsets[K]) -> OffsetCommitRequest:
    """A commit outside of a transaction, for no member of the group."""
    topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
    topics = topics_to_commit(topic_type, topic_type.OffsetCommitRequestPartition, offsets)
    return OffsetCommitRequest(group_id=group, topics=topics, max_version=COMMIT_VERSION)


def topics_to_commit(topic_type: Any, partition_type: Any, offsets: Offsets[K]) -> list[Any]:
    """The topics of an OffsetCommit or a TxnOffsetCommit, of kafka-python's classes for that request."""
    parts = (
        (
            topic,
            partition_type(
                partition_index=number,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            ),
        )
        for (topic, number), committed in offsets.items()
    )
    return [topic_type(name=topic, partitions=found) for topic, found in grouped(parts).items()]


class OffsetBatches(Generic[K]):
    """The offsets of one group in batches of at most `limit` bytes. A batch that was `refused` comes again in smaller ones."""

    def __init__(self, group: str, offsets: Offsets[K], limit: int = BATCH_BYTES) -> None:
        self._sizes = {
            key: RECORD_BYTES + len(group.encode()) + len(key[0].encode()) + len(offset.metadata.encode())
            for key, offset in offsets.items()
        }
        self._left = dict(offsets)
        self._batch: dict[K, CommittedOffset] = {}
        self.limit = limit

    def __iter__(self) -> Iterator[dict[K, CommittedOffset]]:
        """Each batch holds the first offsets that are left, as many as fit the limit, at least one."""
        while self._left:
            self._batch, size = {}, 0
            for key, offset in self._left.items():
                size += self._sizes[key]
                if self._batch and size > self.limit:
                    break
                self._batch[key] = offset
            yield self._batch
            for key in self._batch:
                del self._left[key]

    def refused(self, code: int) -> bool:
        """Whether the broker's error `code` may mean that this batch is too large. Then the next batches have at most half of its size."""
        if code not in TOO_MANY_OFFSETS or len(self._batch) < 2:
            return False
        self.limit = sum(self._sizes[key] for key in self._batch) // 2
        self._batch = {}
        return True
