"""Whether a log still holds the records that were read from it: OffsetForLeaderEpoch (KIP-320), read only.

A reader knows the leader epoch at the offset that it has reached. The leader says where its log ends for epochs up to that one. If this end
is before the offset, the log holds other records from there on. If the leader does not know the epoch, its list of epochs proves nothing:
when a compacted partition moves to another broker, Kafka builds the list again from the records that are left. Then the record before the
offset decides. If there is no such record, or the reader knows no epoch, the end of the log decides.

An offset and the leader epoch of its record name one record for ever: after an unclean election, offsets come again under a later epoch.
"""

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from ferry.clusters.logs.fetching import epoch_before, log_bounds
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent, answered
from ferry.clusters.net.error_policy import OFFSET_FOR_LEADER_EPOCH, Action
from ferry.clusters.net.event_loop import together
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.clusters.net.shared_connection import ConnectedCluster
from ferry.wire.ranges import NO_END

T = TypeVar("T")
# The question about one partition.
W = TypeVar("W")

# Above every leader epoch.
NO_LATER_EPOCH = 1 << 31
# Attempts: the leader of a partition may change at the moment of the request.
TRIES = 2


class ReadTo(NamedTuple):
    """The offset up to which a log was read, exclusive, and the leader epoch there (-1 unknown; ferry.wire.produce_batch.ProduceBatch)."""

    offset: int
    epoch: int


class Divergence(NamedTuple):
    """From `end` on, or earlier, the log holds other records than those that were read. No record before `end` is later than `epoch`."""

    epoch: int
    end: int

    @property
    def proven(self) -> bool:
        """Whether leader epochs prove it. If only the end of the log indicates it, a leader that lags behind may have given that end."""
        return self.epoch != NO_LATER_EPOCH


# Asks one broker about partitions that it leads.
Asking = Callable[[ClusterConnection, Leaders, Mapping[TopicPartition, W]], Coroutine[Any, Any, Mapping[TopicPartition, T]]]


def diverged_logs(cluster: ConnectedCluster, wanted: Mapping[TopicPartition, ReadTo]) -> dict[TopicPartition, Divergence]:
    """The partitions whose log holds other records now; those without an answer are left out. ClusterUnreachable, NotAuthorized."""
    told = _of_all(cluster, wanted, _divergences)
    return {key: divergence for key, divergence in told.items() if divergence is not None}


def same_logs(cluster: ConnectedCluster, wanted: Mapping[TopicPartition, ReadTo], topic_ids: Mapping[str, UUID]) -> set[TopicPartition]:
    """The partitions of topics with these ids whose leader says that the log holds what was read. Errors as above."""
    return {key for key, divergence in _of_all(cluster, wanted, _divergences, topic_ids).items() if divergence is None}


def epoch_ends(cluster: ConnectedCluster, wanted: Mapping[TopicPartition, Collection[int]]) -> dict[TopicPartition, dict[int, int]]:
    """Where each log ends for these leader epochs, exclusive; without partitions whose leader does not answer. Errors as above.

    0: the log no longer holds a record of the epoch. NO_END: its leader does not know an epoch that is so late; this proves nothing.
    """
    return _of_all(cluster, wanted, _epoch_ends)


async def _epoch_ends(
    connection: ClusterConnection, leaders: Leaders, wanted: Mapping[TopicPartition, Collection[int]]
) -> dict[TopicPartition, dict[int, int]]:
    """`epoch_ends` of partitions that one broker leads. A request asks for one epoch of each partition; all requests are sent at once."""
    rounds = grouped((place, (key, ReadTo(0, epoch))) for key, epochs in wanted.items() for place, epoch in enumerate(epochs))
    each = [dict(pairs) for pairs in rounds.values()]
    answers = await together([connection.loop.start(_ends, connection, leaders, asked) for asked in each])
    found: dict[TopicPartition, dict[int, int]] = {key: {} for key in wanted}
    for asked, told in zip(each, answers, strict=True):
        for key, (latest, end) in told.items():
            epoch = asked[key].epoch
            found[key][epoch] = NO_END if latest < 0 else end if latest == epoch else 0
    return {key: ends for key, ends in found.items() if len(ends) == len(wanted[key])}


def _of_all(
    cluster: ConnectedCluster, wanted: Mapping[TopicPartition, W], ask: Asking[W, T], topic_ids: Mapping[str, UUID] | None = None
) -> dict[TopicPartition, T]:
    """The answers of the leaders. If a leader does not answer, Ferry asks once more."""
    return cluster.ask(_ask_all, wanted, ask, topic_ids) if wanted else {}


async def _ask_all(
    connection: ClusterConnection, wanted: Mapping[TopicPartition, W], ask: Asking[W, T], topic_ids: Mapping[str, UUID] | None
) -> dict[TopicPartition, T]:
    leaders = Leaders(connection, {key.topic for key in wanted}, topic_ids)
    found: dict[TopicPartition, T] = {}
    for _ in range(TRIES):
        with suppress(RequestNotSent, RequestLost):
            await leaders.refresh()
        found |= await _of_each(connection, leaders, {key: wanted[key] for key in wanted if key not in found}, ask)
        if len(found) == len(wanted):
            break
    return found


async def still_led(connection: ClusterConnection, leaders: Leaders, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
    """The partitions whose leader epoch is still the one that `leaders` knows: a leader refuses a request with an older one."""
    led = {key: ReadTo(0, leaders.of(*key).epoch) for key in partitions}
    return set(await _of_each(connection, leaders, led, _ends))


async def _of_each(
    connection: ClusterConnection, leaders: Leaders, wanted: Mapping[TopicPartition, W], ask: Asking[W, T]
) -> dict[TopicPartition, T]:
    """The answers of the leaders, which are asked side by side; without partitions whose leader does not answer."""
    by_node = leaders.by_node(wanted).values()
    asked = [connection.loop.start(ask, connection, leaders, {key: wanted[key] for key in keys}) for keys in by_node]
    return {key: told for each in await answered(asked) for key, told in each.items()}


async def divergence_of(connection: ClusterConnection, leaders: Leaders, key: TopicPartition, read_to: ReadTo) -> Divergence | None:
    """The divergence of one partition; None: it is the log that was read. RequestNotSent (the broker has no answer now) or RequestLost."""
    told = await _divergences(connection, leaders, {key: read_to})
    if key not in told:
        raise RequestNotSent(f"OffsetForLeaderEpoch for {key.topic}-{key.partition}: no answer")
    return told[key]


async def _divergences(
    connection: ClusterConnection, leaders: Leaders, wanted: Mapping[TopicPartition, ReadTo]
) -> dict[TopicPartition, Divergence | None]:
    """By partition that one broker leads; None: no divergence. Without partitions about which the broker cannot answer now."""
    found: dict[TopicPartition, Divergence | None] = {}
    told = await _ends(connection, leaders, {key: read_to for key, read_to in wanted.items() if read_to.epoch >= 0})
    for key, read_to in wanted.items():
        if read_to.epoch < 0 or key in told:
            with suppress(RequestNotSent, RequestLost):
                found[key] = await _divergence(connection, leaders, key, read_to, told.get(key))
    return found


async def _divergence(
    connection: ClusterConnection, leaders: Leaders, key: TopicPartition, read_to: ReadTo, told: tuple[int, int] | None
) -> Divergence | None:
    """The divergence; None: there is none. `told`: the answer of `_ends` for the epoch that was read; None: the epoch is not known."""
    if told is not None:
        epoch, end = told
        if 0 <= end < read_to.offset:
            return Divergence(epoch, end)
        if epoch == read_to.epoch:
            return None
        before = await epoch_before(connection, leaders, *key, read_to.offset)
        if before is not None:
            return Divergence(before, read_to.offset - 1) if before != read_to.epoch else None
    _, end = await log_bounds(connection, leaders, *key)
    return Divergence(NO_LATER_EPOCH, end) if end < read_to.offset else None


async def _ends(
    connection: ClusterConnection, leaders: Leaders, wanted: Mapping[TopicPartition, ReadTo]
) -> dict[TopicPartition, tuple[int, int]]:
    """By partition the largest epoch up to the one that was read, and where it ends; -1, -1 if the leader knows no such epoch."""
    if not wanted:
        return {}
    topic_type = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    (node,) = {leaders.of(*key).node for key in wanted}
    if node < 0:
        raise RequestNotSent("OffsetForLeaderEpoch: the partition has no leader")

    def partition(topic: str, number: int) -> Any:
        current, read = leaders.of(topic, number).epoch, wanted[TopicPartition(topic, number)].epoch
        return topic_type.OffsetForLeaderPartition(partition=number, current_leader_epoch=current, leader_epoch=read)

    by_topic = grouped((key.topic, partition(*key)) for key in wanted)
    topics = [topic_type(topic=topic, partitions=parts) for topic, parts in by_topic.items()]
    answer = await connection.send(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), node)
    return {
        TopicPartition(topic.topic, part.partition): (part.leader_epoch, part.end_offset)
        for topic in answer.topics
        for part in topic.partitions
        if OFFSET_FOR_LEADER_EPOCH.action(part.error_code) is Action.GO_ON
    }
