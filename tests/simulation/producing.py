"""How a broker answers Produce (KafkaApis.handleProduceRequest, ReplicaManager, UnifiedLog.append, LogValidator).

Ferry's own request and answer stand for kafka-python's, as on its connections. A batch of a transaction is first admitted by the
transaction's coordinator; then it is checked, appended, and answered when all replicas in sync have it, or when the request's time is over.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from uuid import UUID

from tests.simulation.batches import LENGTH_OVERHEAD, NO_PRODUCER, Sent, is_intact, keys, sent
from tests.simulation.codes import Code
from tests.simulation.partition import Led, Partition
from tests.simulation.rights import Kind, Operation
from tests.simulation.state import Broker, ClusterState, Parked
from tests.simulation.steps import Reply
from tests.simulation.topics import Topic
from tests.simulation.transaction_coordinator import TransactionCoordinators
from tests.simulation.transactions import Pair

from ferry.clusters.logs.producing import ACKNOWLEDGE_MILLISECONDS, BY_ID, BatchesAnswer, BatchesRequest, PartitionAnswer

# From these versions on a client knows TRANSACTION_ABORTABLE, and leaves it to the broker to add partitions to the transaction (KIP-890).
KNOWS_ABORTABLE, ADDS_PARTITIONS = 11, 12
NO_OFFSET = -1
# So long a broker asks a coordinator again whose markers are being written (add.partitions.to.txn.retry.backoff.max.ms).
MARKERS_MILLISECONDS = 100
# What a coordinator answers that a client of Produce may not know (ReplicaManager.handleProduceAppend).
_UNVERIFIED = frozenset({Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR})
_NOT_VERIFIED = "Unable to verify the partition has been added to the transaction. Underlying error: "
_MESSAGES = {
    Code.INVALID_TIMESTAMP: "One or more records have been rejected due to invalid timestamp",
    Code.INVALID_TXN_STATE: "Partition was not added to the transaction",
}


class Appended(NamedTuple):
    """What became of one batch: a code, and the offset of its first record. `required`: the end that all replicas must reach."""

    code: Code
    base_offset: int = NO_OFFSET
    required: int = NO_OFFSET
    message: str | None = None


class Wanted(NamedTuple):
    """One batch of a request, and where it shall go."""

    topic: str | UUID  # as in the answer
    index: int
    data: bytes
    partition: Partition | None
    found: Topic | None


class Producing:
    """Answers Produce."""

    def __init__(self, state: ClusterState, transactions: TransactionCoordinators) -> None:
        self._state, self._transactions = state, transactions

    def answer(self, broker: Broker, request: BatchesRequest, version: int, reply: Reply) -> None:
        name = request.transactional_id
        if version < ADDS_PARTITIONS or not self._transactions.is_decided(name):
            self._answer(broker, request, version, reply)
            return
        due = self._state.now + MARKERS_MILLISECONDS
        about, ready = f"Produce at {broker.node}", lambda: not self._transactions.is_decided(name)
        self._state.park(Parked(about, broker, reply, due, ready, lambda: self._answer(broker, request, version, reply)))

    def _answer(self, broker: Broker, request: BatchesRequest, version: int, reply: Reply) -> None:
        outcomes: list[tuple[Wanted, Appended, Led | None]] = []
        for wanted in self._wanted(broker, request, version):
            led = None if wanted.partition is None else self._state.led(broker, wanted.partition)
            outcomes.append((wanted, self._append(broker, wanted, request.transactional_id, version), led))
        waiting = [(wanted.partition, led, done.required) for wanted, done, led in outcomes if done.required >= 0]

        def ready() -> bool:
            return all(self._is_over(broker, partition, led, required) for partition, led, required in waiting)

        def made() -> BatchesAnswer:
            return BatchesAnswer([self._part(broker, *outcome) for outcome in outcomes], broker.throttle)

        if ready():
            reply.give(made())
        else:
            due = self._state.now + ACKNOWLEDGE_MILLISECONDS
            self._state.park(Parked(f"Produce at {broker.node}", broker, reply, due, ready, lambda: reply.give(made())))

    def _wanted(self, broker: Broker, request: BatchesRequest, version: int) -> list[Wanted]:
        found = []
        for name, topic_id, parts in request.batches:
            topic = self._state.topic_of(broker, None if version >= BY_ID else name, topic_id)
            for index, buffers in parts:
                partition = self._state.partition_of(broker, topic, index)
                found.append(Wanted(topic_id if version >= BY_ID else name, index, b"".join(buffers), partition, topic))
        return found

    def _append(self, broker: Broker, wanted: Wanted, transactional_id: str | None, version: int) -> Appended:
        partition, topic = wanted.partition, wanted.found
        if transactional_id and not self._state.rights.may(Operation.WRITE, Kind.TRANSACTIONAL_ID, transactional_id):
            return Appended(Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        name = wanted.topic if topic is None else topic.name
        if isinstance(name, str) and not self._state.rights.may(Operation.WRITE, Kind.TOPIC, name):
            return Appended(Code.TOPIC_AUTHORIZATION_FAILED)
        if partition is None or topic is None:
            by_id = version >= BY_ID and topic is None
            return Appended(Code.UNKNOWN_TOPIC_ID if by_id else Code.UNKNOWN_TOPIC_OR_PARTITION)
        code = self._state.not_led(broker, partition)
        if code is not Code.NONE:
            return Appended(code)
        try:
            head = sent(wanted.data)
        except struct.error:
            return Appended(Code.CORRUPT_MESSAGE)
        verified, refused = self._verified(broker, partition, head, transactional_id, version)
        if refused is not None:
            return refused
        led = self._state.led(broker, partition)
        if len(led.in_sync) < topic.least_in_sync:
            return Appended(Code.NOT_ENOUGH_REPLICAS)
        invalid = _invalid(topic, partition, wanted.data, head, self._state.now)
        if invalid is not None:
            return invalid
        return self._append_checked(broker, led, wanted, head, verified)

    def _append_checked(self, broker: Broker, led: Led, wanted: Wanted, head: Sent, verified: bool) -> Appended:
        partition, topic = wanted.partition, wanted.found
        assert partition is not None
        assert topic is not None
        log = partition.logs[broker.node]
        kept = log.producers.duplicate(head) if head.producer_id != NO_PRODUCER else None
        if kept is not None:
            return Appended(Code.NONE, kept.first_offset, kept.first_offset + head.last_offset_delta + 1)
        code = log.producers.refusal(head, verified=verified)
        if code is not Code.NONE:
            return Appended(code, message=_refused(code, head, partition))
        batch = partition.append(broker.node, led, wanted.data, self._state.now if topic.keeps_append_time else None)
        return Appended(Code.NONE, batch.base_offset, batch.next_offset)

    def _verified(
        self, broker: Broker, partition: Partition, head: Sent, transactional_id: str | None, version: int
    ) -> tuple[bool, Appended | None]:
        """Whether the coordinator admits the batch now; and the refusal, if it does not. Old brokers do not ask it."""
        producers = partition.logs[broker.node].producers
        known = head.producer_epoch if self._state.checks_open_epoch else None
        if not head.is_transactional or not self._state.verifies or producers.is_open(head.producer_id, known):
            return True, None
        if self._state.fences_first and producers.is_fenced(head.producer_id, head.producer_epoch):
            return False, Appended(Code.INVALID_PRODUCER_EPOCH)
        adds = version >= ADDS_PARTITIONS
        producers.begin_verifying(head, bumps=adds)
        code = self._transactions.admits(transactional_id, Pair(head.producer_id, head.producer_epoch), partition.key, adds=adds)
        if code is Code.NONE:
            return True, None
        if code is Code.TRANSACTION_ABORTABLE and version != KNOWS_ABORTABLE:
            code = Code.INVALID_TXN_STATE
        if code in _UNVERIFIED or (code is Code.CONCURRENT_TRANSACTIONS and not adds):
            return False, Appended(Code.NOT_ENOUGH_REPLICAS, message=f"{_NOT_VERIFIED}{code.name}")
        return False, Appended(code, message=_MESSAGES.get(code))

    def _is_over(self, broker: Broker, partition: Partition | None, led: Led | None, required: int) -> bool:
        """Whether nothing is left to wait for: the batch is on all replicas in sync, or this broker does not lead any more."""
        assert partition is not None
        now = self._state.led(broker, partition)
        if led is None or now.leader != broker.node or now.epoch != led.epoch:
            return True
        return partition.logs[broker.node].high_watermark >= required

    def _part(self, broker: Broker, wanted: Wanted, done: Appended, led: Led | None) -> PartitionAnswer:
        code, base_offset, partition = done.code, done.base_offset, wanted.partition
        if code is Code.NONE and partition is not None:
            now = self._state.led(broker, partition)
            if led is None or now.leader != broker.node or now.epoch != led.epoch:
                code = Code.NOT_LEADER_OR_FOLLOWER
            elif partition.logs[broker.node].high_watermark < done.required:
                code = Code.REQUEST_TIMED_OUT
        return PartitionAnswer(wanted.topic, wanted.index, int(code), base_offset, done.message)


def _invalid(topic: Topic, partition: Partition, data: bytes, head: Sent, now: int) -> Appended | None:
    """Why a batch is refused before its producer is looked at."""
    if LENGTH_OVERHEAD + head.length > topic.largest_batch:
        told = f"The record batch size in the append to {partition.topic}-{partition.index} is {LENGTH_OVERHEAD + head.length} bytes which "
        return Appended(Code.MESSAGE_TOO_LARGE, message=f"{told}exceeds the maximum configured value of {topic.largest_batch}.")
    if not is_intact(data, head):
        return Appended(Code.CORRUPT_MESSAGE)
    if head.records != head.last_offset_delta + 1 or head.records <= 0:
        return Appended(Code.INVALID_RECORD)
    if topic.is_compacted and any(key is None for key in keys(data)):
        told = f"Compacted topic cannot accept message without key in topic partition {partition.topic}-{partition.index}."
        return Appended(Code.INVALID_RECORD, message=f"One or more records have been rejected due to record errors: {told}")
    if not topic.keeps_append_time and head.max_timestamp > now + topic.latest_ahead:
        return Appended(Code.INVALID_TIMESTAMP, message=_MESSAGES[Code.INVALID_TIMESTAMP])
    return None


def _refused(code: Code, head: Sent, partition: Partition) -> str:
    """Ferry shows these messages and reads none of them; so they are shorter than Kafka's."""
    return f"producer {head.producer_id} in {partition.topic}-{partition.index}: {code.name}"
