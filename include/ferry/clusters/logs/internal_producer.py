"""Appends single records to internal topics outside a lane: reports, acknowledgements, MM2's records. None of them decides about data.

A partition has one batch in flight, so its records stay in order. If an answer is lost, Ferry sends the batch again. Then the log may hold
it twice; with a producer id the leader recognises it by its sequence number.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial

from confluent_kafka import KafkaError
from kafka.partitioner.default import murmur2

from ferry import clock
from ferry.clusters.groups.coordination import NO_IDENTITY, Coordinator, ProducerIdentity
from ferry.clusters.logs.internal_batches import BATCH_BYTES, RECORD_OVERHEAD_BYTES, InternalBatch, KeyValue, internal_batches
from ferry.clusters.logs.producing import produce_request
from ferry.clusters.net.backoff import doubling
from ferry.clusters.net.connections import BOOTSTRAP_MILLISECONDS, ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_codes import CODES
from ferry.clusters.net.error_policy import PRODUCE, Action
from ferry.clusters.net.event_loop import together
from ferry.clusters.net.failures import explained
from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.clusters.net.shared_connection import Asked, ConnectedCluster
from ferry.config import ClientRole, Cluster
from ferry.errors import ClusterUnreachable, FerryError, NotAuthorized, WriteRefused

# A leader election may take this long.
WRITE_SECONDS = 60.0
# After this Ferry gives up a leader that hangs, and asks the new one.
ANSWER_MILLISECONDS = 10_000
# For refusals that do not say what to do.
_CAUSES = {
    CODES["UNKNOWN_TOPIC_OR_PARTITION"]: "there is no such topic any more",
    CODES["INVALID_TIMESTAMP"]: "the broker refuses the time of the record: compare this machine's clock with the broker's",
}
# The pause between two attempts.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0


def ask_identity(cluster: ConnectedCluster) -> Asked[ProducerIdentity]:
    """A producer id for one call of append_records."""

    async def ask(connection: ClusterConnection) -> ProducerIdentity:
        return await Coordinator(connection.loop, connection, "", "").idempotent_identity()

    return cluster.begin_asking(ask, role=ClientRole.PRODUCER)


def append_records(
    cluster: ConnectedCluster,
    records: Mapping[str, Iterable[KeyValue]],
    *,
    partition: int = -1,
    timestamp: int = 0,
    identity: Asked[ProducerIdentity] | None = None,
    seconds: float | None = None,
) -> None:
    """Append (key, value) records, by topic; returns when all replicas have them. ClusterUnreachable or NotAuthorized if they cannot be
    written.

    `partition` -1: by the key, as in Java's producer. `timestamp` in ms, 0: now. `identity`: from ask_identity; then the log holds no batch
    twice. `seconds`: how long to wait for a leader, by default WRITE_SECONDS.
    """
    listed = {topic: found for topic, pairs in records.items() if (found := list(pairs))}
    largest, milliseconds = (
        cluster.cluster.resolved(ClientRole.PRODUCER).value(name) for name in ("max.request.size", "delivery.timeout.ms")
    )
    for topic, pairs in listed.items():
        if any(len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES > largest for key, value in pairs):
            raise _problem(cluster.cluster, topic, KafkaError.MSG_SIZE_TOO_LARGE)
    seconds = min(WRITE_SECONDS if seconds is None else seconds, milliseconds / 1000)

    known = NO_IDENTITY
    if identity is not None:
        try:
            known = identity.answer()
        except NotAuthorized as problem:  # brokers from 2.8 on give a producer id to every user who may write to any topic (KIP-679)
            raise _problem(cluster.cluster, next(iter(records)), CODES["TOPIC_AUTHORIZATION_FAILED"]) from problem

    # Compaction works within a partition: records of one key from Java's clients and from here must be in the same partition.
    def divided(topic: str, width: int) -> dict[TopicPartition, list[InternalBatch]]:
        numbers = (partition if partition >= 0 else (murmur2(key) & 0x7FFFFFFF) % width for key, _ in listed[topic])
        found = grouped(zip((TopicPartition(topic, number) for number in numbers), listed[topic], strict=True))
        return {key: list(internal_batches(pairs, timestamp, min(BATCH_BYTES, largest))) for key, pairs in found.items()}

    async def write(connection: ClusterConnection, deadline: float) -> list[str]:
        writings = {topic: _Writing(cluster.cluster, topic, known) for topic in listed}
        start = connection.loop.start
        done = [start(writing.run, connection, partial(divided, topic), deadline) for topic, writing in writings.items()]
        return [topic for topic, written in zip(writings, await together(done), strict=True) if not written]

    contact = min(BOOTSTRAP_MILLISECONDS, seconds * 1_000)
    if listed and (left := cluster.ask(write, clock.monotonic() + seconds, role=ClientRole.PRODUCER, milliseconds=contact)):
        raise ClusterUnreachable(f"cluster {cluster.alias}: {', '.join(left)} takes no records: no answer in {seconds:.0f} s")


class _Writing:
    """Sends batches to one topic, one to a partition at a time."""

    def __init__(self, cluster: Cluster, topic: str, identity: ProducerIdentity) -> None:
        self._cluster, self._topic, self._identity = cluster, topic, identity
        self._sent: Counter[TopicPartition] = Counter()
        self._left: dict[TopicPartition, list[InternalBatch]] = {}

    async def run(
        self, connection: ClusterConnection, divided: Callable[[int], dict[TopicPartition, list[InternalBatch]]], deadline: float
    ) -> bool:
        """Whether the topic took all batches before `deadline` (monotonic). `divided`: the batches by partition number."""
        leaders, pauses = connection.leaders, doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            with suppress(RequestNotSent, RequestLost):
                await leaders.known([self._topic])
                if code := leaders.refused(self._topic) or (CODES["UNKNOWN_TOPIC_OR_PARTITION"] if leaders.is_gone(self._topic) else 0):
                    raise _problem(self._cluster, self._topic, code)
                if not self._left and (width := len(leaders.partitions(self._topic))):
                    self._left = divided(width)
                while self._left and await self._send(connection):
                    if not any(self._left.values()):
                        return True
            leaders.forget([self._topic])
            if clock.monotonic() > deadline:
                return False
            await connection.loop.sleep(next(pauses))

    async def _send(self, connection: ClusterConnection) -> bool:
        """The next batch of each partition; whether all were accepted."""
        waiting = [key for key, batches in self._left.items() if batches]
        sent = []
        for node, keys in connection.leaders.by_node(waiting).items():
            batches = [(*key, self._left[key][0].encode(*self._identity, self._sequence(key), False)) for key in keys]
            request = produce_request(batches, connection.leaders, None, transactions_v2=False)
            sent.append(connection.submit(request, node, ANSWER_MILLISECONDS))
        accepted = 0
        for future in sent:
            with suppress(RequestNotSent, RequestLost):
                for answer in (await connection.answer_to(future)).partitions:
                    if PRODUCE.action(answer.error_code) is Action.GO_ON or answer.error_code == CODES["DUPLICATE_SEQUENCE_NUMBER"]:
                        key = TopicPartition(self._topic, answer.partition)
                        self._sent[key] += self._left[key].pop(0).count
                        accepted += 1
                    elif PRODUCE.action(answer.error_code) is not Action.LEADER:
                        raise _problem(self._cluster, self._topic, answer.error_code)
        return accepted == len(waiting)

    def _sequence(self, key: TopicPartition) -> int:
        return -1 if self._identity == NO_IDENTITY else self._sent[key]


def _problem(cluster: Cluster, topic: str, code: int) -> FerryError:
    if code in _CAUSES:
        return WriteRefused(f"cluster {cluster.alias}: writing to {topic} failed: {_CAUSES[code]}")
    return explained(cluster, f"writing to {topic}", KafkaError(code), grant=f"Write on topic {topic}", role=ClientRole.PRODUCER)
