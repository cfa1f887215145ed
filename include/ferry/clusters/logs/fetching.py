"""Fetch and ListOffsets on the source, as plain values.

A fetch names the topic by its id and carries the current leader epoch and the epoch of the last copied record. So the broker itself detects
recreated topics (KIP-516) and truncated logs (KIP-320). Ferry uses no fetch sessions, because a lane's set of partitions changes too
quickly.

Brokers from 3.1 on take topic ids in a fetch even if their cluster has none: with inter.broker.protocol.version below 2.8.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.protocol.consumer import FetchRequest

from ferry.clusters.logs.offset_listing import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets_request
from ferry.clusters.net.connections import ClusterConnection, RequestNotSent
from ferry.clusters.net.error_policy import FETCH, LIST_OFFSETS, METADATA, Action
from ferry.clusters.net.leaders import NO_TOPIC_ID, Leaders
from ferry.clusters.net.partitions import TopicPartition, grouped, partitions_of
from ferry.errors import PartitionError
from ferry.wire.batch import read_entry

# How long a broker may wait before it answers without records. A copy always has records to read, unless a leader changes.
FETCH_WAIT_MILLISECONDS = 500
LIST_OFFSETS_MILLISECONDS = 30_000

# The newest version with names of topics.
BY_NAME = 12
_TOPIC = FetchRequest.FetchTopic
_PARTITION = FetchRequest.FetchTopic.FetchPartition


class FetchPosition(NamedTuple):
    """What to fetch next of a partition: an upstream offset, and the leader epoch to fetch it with (-1 unknown, see ProduceBatch)."""

    topic: str
    partition: int
    offset: int
    last_epoch: int
    limit: int | None = None  # bytes to fetch, if fewer than usual are enough


class Fetched(NamedTuple):
    """The part of a fetch response about one partition. `diverged`: the leader's epochs contradict offset and epoch (see leader_epochs)."""

    asked: FetchPosition
    error: int
    records: memoryview
    aborted: list[tuple[int, int]]
    diverged: bool
    last_stable_offset: int
    high_watermark: int = -1


def fetch_request(
    wanted: Sequence[FetchPosition],
    leaders: Leaders,
    *,
    total_bytes: int,
    partition_bytes: int,
    isolation: int = READ_COMMITTED,
    wait_milliseconds: int = FETCH_WAIT_MILLISECONDS,
) -> FetchRequest:
    """One request for partitions that one broker leads."""
    by_topic = grouped(
        (
            topic,
            _PARTITION(
                partition=partition,
                current_leader_epoch=leaders.of(topic, partition).epoch,
                fetch_offset=offset,
                last_fetched_epoch=last_epoch,
                partition_max_bytes=partition_bytes if limit is None else min(partition_bytes, limit),
            ),
        )
        for topic, partition, offset, last_epoch, limit in wanted
    )
    topics = [_TOPIC(topic=name, topic_id=leaders.topic_id(name) or NO_TOPIC_ID, partitions=parts) for name, parts in by_topic.items()]
    return FetchRequest(
        max_wait_ms=wait_milliseconds,
        min_bytes=1,
        max_bytes=total_bytes,
        isolation_level=isolation,
        topics=topics,
        max_version=BY_NAME if any(topic.topic_id == NO_TOPIC_ID for topic in topics) else None,
    )


def fetched_partitions(answer: Any, asked: Iterable[FetchPosition], leaders: Leaders) -> list[Fetched]:
    """The partitions of a fetch response, in the order of the response. An error of the whole request applies to every partition."""
    wanted = {(position.topic, position.partition): position for position in asked}
    if answer.error_code:
        return [Fetched(position, answer.error_code, memoryview(b""), [], False, -1) for position in wanted.values()]
    found = []
    for topic in answer.responses or ():
        name = leaders.name_of(getattr(topic, "topic", None), getattr(topic, "topic_id", None))
        for part in topic.partitions or ():
            position = wanted.get((name, part.partition_index))
            if position is not None:
                aborted = [(entry.producer_id, entry.first_offset) for entry in part.aborted_transactions or ()]
                diverging: Any = getattr(part, "diverging_epoch", None)
                diverged = diverging is not None and (diverging.epoch >= 0 or diverging.end_offset >= 0)
                records = memoryview(part.records or b"")
                ends = part.last_stable_offset, part.high_watermark
                found.append(Fetched(position, part.error_code, records, aborted, diverged, *ends))
    return found


async def log_bounds(connection: ClusterConnection, leaders: Leaders, topic: str, partition: int) -> tuple[int, int]:
    """Log start and high watermark. RequestNotSent while no leader knows them (KIP-207), RequestLost, NotAuthorized, PartitionError."""
    return await _offset(connection, leaders, topic, partition, EARLIEST), await _offset(connection, leaders, topic, partition, LATEST)


async def stable_ends(connection: ClusterConnection, node: int, epochs: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int]:
    """The last stable offsets of those partitions that broker `node` leads with these leader epochs. RequestNotSent, RequestLost."""
    asked = {TopicPartition(*key): epoch for key, epoch in epochs.items()}
    request = list_offsets_request(asked, LATEST, READ_COMMITTED, LIST_OFFSETS_MILLISECONDS)
    answer = await connection.send(request, node)
    return {key: int(part.offset) for key, part in partitions_of(answer.topics) if not part.error_code}


def without_leader(connection: ClusterConnection, leaders: Leaders, topic: str, partition: int) -> Exception:
    """Why a partition has no leader: NotAuthorized or PartitionError where Metadata refused to name it, otherwise RequestNotSent."""
    code = leaders.refused(topic)
    match METADATA.action(code):
        case Action.DENIED:
            return connection.denied(f"looking for the leaders of topic {topic}", METADATA.right(code, topic=topic))
        case Action.REFUSED:
            return PartitionError(topic, partition, f"cluster {connection.alias} does not tell its leader: {METADATA.told(code)}")
        case _:
            return RequestNotSent(f"{topic}-{partition} has no leader")


async def epoch_before(connection: ClusterConnection, leaders: Leaders, topic: str, partition: int, offset: int) -> int | None:
    """The leader epoch of the entry that holds the last offset before `offset`; None where compaction or retention left none.

    Needed if the leader's epochs do not say whether the log still holds what was read (leader_epochs). RequestNotSent or RequestLost.
    """
    leader = leaders.of(topic, partition)
    if leader.node < 0:
        raise RequestNotSent(f"Fetch of {topic}-{partition}: it has no leader")
    asked = [FetchPosition(topic, partition, offset - 1, -1)]
    # A broker answers with at least one whole batch. Uncommitted reads see every record below the high watermark.
    request = fetch_request(asked, leaders, total_bytes=1, partition_bytes=1, isolation=READ_UNCOMMITTED)
    for found in fetched_partitions(await connection.send(request, leader.node), asked, leaders):
        if FETCH.action(found.error) is Action.BOUNDS:
            return None
        entry = None if found.error else read_entry(found.records, 0)
        if entry is not None:
            return entry[0].leader_epoch if entry[0].base_offset < offset else None
    raise RequestNotSent(f"Fetch of {topic}-{partition}: no entry was answered at offset {offset - 1}")


async def _offset(connection: ClusterConnection, leaders: Leaders, topic: str, partition: int, which: int) -> int:
    leader = leaders.of(topic, partition)
    if leader.node < 0:
        raise without_leader(connection, leaders, topic, partition)
    asked = {TopicPartition(topic, partition): leader.epoch}
    request = list_offsets_request(asked, which, READ_UNCOMMITTED, LIST_OFFSETS_MILLISECONDS)
    part = (await connection.send(request, leader.node)).topics[0].partitions[0]
    match LIST_OFFSETS.action(part.error_code):
        case Action.GO_ON:
            return int(part.offset)
        case Action.DENIED:
            raise connection.denied(f"listing offsets of {topic}", LIST_OFFSETS.right(part.error_code, topic=topic))
        case _:
            raise RequestNotSent(f"ListOffsets for {topic}-{partition}: {LIST_OFFSETS.told(part.error_code)}")
