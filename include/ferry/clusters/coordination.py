"""The coordinators' side of a lane: producer ids, membership of transactions, positions, EndTxn.

Fencing is the broker's compare-and-set on (producer id, epoch): a conditional init or any request with a pair that is not the current one
is refused, which shows here as `Fenced`. Requests that may be repeated are repeated until a deadline. EndTxn is not, and TxnOffsetCommit
neither: before KIP-890 transactions share an epoch, so the first copy could still arrive in the next transaction and put its position back.
Their unknown outcome surfaces as `OutcomeUnknown`, to be settled by an init with the held pair (KIP-360) and a fresh look at the positions.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from kafka.protocol.consumer.group import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from ferry.clusters.connections import ClusterConnection, EventLoop, RequestLost, RequestNotSent
from ferry.clusters.leaders import GONE_SECONDS
from ferry.clusters.offset_batches import BATCH_BYTES, OffsetBatches
from ferry.clusters.silence import PATIENCE_SECONDS
from ferry.errors import ClusterUnreachable, ConfigError

# An abandoned transaction of ours is aborted by the broker after this long, so readers of the target never wait longer for it.
TRANSACTION_MILLISECONDS = 60_000
# A coordinator that moves needs seconds.
COORDINATION_SECONDS = PATIENCE_SECONDS
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 1.0

# Kafka's error codes (org.apache.kafka.common.protocol.Errors)
NONE, UNKNOWN_TOPIC_OR_PARTITION = 0, 3
LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
TOPIC_REFUSED, GROUP_REFUSED, CLUSTER_REFUSED, TRANSACTIONAL_ID_REFUSED = 29, 30, 31, 53
INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED = 47, 49, 90
INVALID_TRANSACTION_TIMEOUT, CONCURRENT_TRANSACTIONS = 50, 51
GROUP_ID_NOT_FOUND, UNSTABLE_OFFSET_COMMIT, UNKNOWN_TOPIC_ID = 69, 88, 100

RETRIABLE = frozenset({LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS, UNSTABLE_OFFSET_COMMIT, 5, 6, 7, 13})
FENCING = frozenset({INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED})
REFUSALS = frozenset({TOPIC_REFUSED, GROUP_REFUSED, CLUSTER_REFUSED, TRANSACTIONAL_ID_REFUSED})
TRANSACTION_COORDINATOR, GROUP_COORDINATOR = 1, 0
# Names instead of topic ids, and the protocol before KIP-890 where the cluster's feature level asks for it.
OFFSET_FETCH_BY_NAME, TXN_OFFSET_COMMIT_BY_NAME, V1_TXN_OFFSET_COMMIT, V1_END_TXN = 9, 5, 4, 4


class ProducerIdentity(NamedTuple):
    """What the broker fences by: producer id and epoch."""

    producer_id: int
    epoch: int


NO_IDENTITY = ProducerIdentity(-1, -1)


class Position(NamedTuple):
    """A committed group offset: next upstream offset, source leader epoch (-1 unknown) and the mark of the transaction that wrote it."""

    offset: int
    leader_epoch: int
    mark: str


class Fenced(Exception):
    """The broker refused the pair: somebody else holds the transactional id now (or the broker timed the transaction out)."""


class OutcomeUnknown(Exception):
    """What was sent may or may not have happened; `partition` (topic, number) when one is to blame."""

    def __init__(self, problem: str, partition: tuple[str, int] | None = None) -> None:
        super().__init__(problem)
        self.partition = partition


class PositionsRefused(Exception):
    """The target has no such remote partitions any more, or a right on their topics is missing (`right`, as Read)."""

    def __init__(self, partitions: tuple[tuple[str, int], ...], right: str = "") -> None:
        super().__init__(f"{right} is missing on: {partitions}" if right else f"unknown at the target: {partitions}")
        self.partitions = partitions
        self.right = right


class Coordinator:
    """One transactional id and one group of one cluster."""

    def __init__(self, loop: EventLoop, connection: ClusterConnection, transactional_id: str, group: str) -> None:
        self._loop = loop
        self._connection = connection
        self._transactional_id = transactional_id
        self._group = group
        self._nodes: dict[int, int] = {}
        # Of one TxnOffsetCommit; less where the broker has refused that much.
        self._batch_bytes = BATCH_BYTES

    async def init(self, identity: ProducerIdentity = NO_IDENTITY) -> ProducerIdentity:
        """Abort what is open and get the next epoch; with a pair only if it is still the current one (else Fenced)."""

        async def ask(node: int) -> tuple[int, Any]:
            answer = await self._connection.send(
                InitProducerIdRequest(
                    transactional_id=self._transactional_id,
                    transaction_timeout_ms=TRANSACTION_MILLISECONDS,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    # Before version 3 the pair is left out of the request, and every holder would be taken for a new one (KIP-360).
                    min_version=3,
                    max_version=5,
                ),
                node,
            )
            return answer.error_code, answer

        answer = await self._until_settled("init", TRANSACTION_COORDINATOR, ask)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    async def settle(self, identity: ProducerIdentity, *, transactions_v2: bool) -> ProducerIdentity:
        """Like `init` with a pair; whatever was open is aborted, unless it was committed already.

        An init alone would do more and less: the broker aborts what is open also for a pair that it then refuses, so a superseded holder
        would disturb its successor; and before KIP-890 it fences the very holder whose transaction it aborts. EndTxn does neither.
        """
        try:
            return await self.init(await self.end(identity, committed=False, transactions_v2=transactions_v2))
        except OutcomeUnknown:  # INVALID_TXN_STATE: nothing is open, or it was committed
            return await self._after_a_commit(identity, transactions_v2=transactions_v2)

    async def _after_a_commit(self, identity: ProducerIdentity, *, transactions_v2: bool) -> ProducerIdentity:
        """The next pair where `identity` may have committed and the answer was lost.

        A coordinator that restarted since then has forgotten the pair before the current one (TransactionLog does not hold it), and refuses
        it here; EndTxn above counts back from the current one. With KIP-890 a commit raises the epoch by one, so the current pair is known.
        """
        try:
            return await self.init(identity)
        except Fenced:
            if not transactions_v2:
                raise
            return await self.init(identity._replace(epoch=identity.epoch + 1))

    async def add_partitions(self, identity: ProducerIdentity, partitions: Iterable[tuple[str, int]]) -> None:
        """Register remote partitions with the transaction (needed before KIP-890's protocol only). PositionsRefused without Write."""
        by_topic = _grouped(partitions)
        topic_type = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic

        async def ask(node: int) -> tuple[int, Any]:
            answer = await self._connection.send(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=self._transactional_id,
                    v3_and_below_producer_id=identity.producer_id,
                    v3_and_below_producer_epoch=identity.epoch,
                    v3_and_below_topics=[topic_type(name=topic, partitions=numbers) for topic, numbers in by_topic.items()],
                    max_version=3,
                ),
                node,
            )
            codes = [
                (result.name, part.partition_index, part.partition_error_code)
                for result in answer.results_by_topic_v3_and_below
                for part in result.results_by_partition
            ]
            _refuse_denied(codes, "Write")
            return _worst(codes), answer

        await self._until_settled("AddPartitionsToTxn", TRANSACTION_COORDINATOR, ask)

    async def add_offsets(self, identity: ProducerIdentity) -> None:
        """Register the group with the transaction (needed before KIP-890's protocol only)."""

        async def ask(node: int) -> tuple[int, Any]:
            answer = await self._connection.send(
                AddOffsetsToTxnRequest(
                    transactional_id=self._transactional_id,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    group_id=self._group,
                ),
                node,
            )
            return answer.error_code, answer

        await self._until_settled("AddOffsetsToTxn", TRANSACTION_COORDINATOR, ask)

    async def commit_positions(
        self, identity: ProducerIdentity, positions: Mapping[tuple[str, int], Position], *, transactions_v2: bool
    ) -> None:
        """Put positions, keyed by remote partition, into the transaction. PositionsRefused when one stays unknown, or may not be read.

        In as many requests as the broker's largest batch asks for: all of them belong to the one transaction, and none that was answered
        with a refusal can still arrive. OutcomeUnknown when an answer is lost: never asked twice; an answer that came may be asked for
        again, in the same transaction.
        """
        batches = OffsetBatches(self._group, positions, attrgetter("mark"), self._batch_bytes)
        while batch := batches.take():
            if await self._commit_batch(identity, batch, batches, transactions_v2=transactions_v2):
                batches.stored(batch)
        self._batch_bytes = batches.limit

    async def _commit_batch(
        self,
        identity: ProducerIdentity,
        positions: Mapping[tuple[str, int], Position],
        batches: OffsetBatches[tuple[str, int], Position],
        *,
        transactions_v2: bool,
    ) -> bool:
        """Whether the broker took them all; False: none of them, and fewer at once may do."""
        topic_type = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        by_topic = _grouped(positions)
        topics = [
            topic_type(
                name=topic,
                partitions=[
                    topic_type.TxnOffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=positions[topic, number].offset,
                        committed_leader_epoch=positions[topic, number].leader_epoch,
                        committed_metadata=positions[topic, number].mark,
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic.items()
        ]

        async def ask(node: int) -> tuple[int, Any]:
            try:
                answer = await self._connection.send(
                    TxnOffsetCommitRequest(
                        transactional_id=self._transactional_id,
                        group_id=self._group,
                        producer_id=identity.producer_id,
                        producer_epoch=identity.epoch,
                        generation_id=-1,
                        member_id="",
                        group_instance_id=None,
                        topics=topics,
                        max_version=TXN_OFFSET_COMMIT_BY_NAME if transactions_v2 else V1_TXN_OFFSET_COMMIT,
                    ),
                    node,
                )
            except RequestLost as problem:
                raise OutcomeUnknown(f"TxnOffsetCommit: {problem}") from problem
            codes = [(topic.name, part.partition_index, part.error_code) for topic in answer.topics for part in topic.partitions]
            gone = tuple((topic, number) for topic, number, code in codes if code in {UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID})
            if gone:
                raise PositionsRefused(gone)
            _refuse_denied(codes, "Read")
            code = _worst(codes)
            return (NONE, None) if batches.refused(positions, code) else (code, answer)

        deadline = time.monotonic() + GONE_SECONDS
        while True:
            try:
                return await self._until_settled("TxnOffsetCommit", GROUP_COORDINATOR, ask) is not None
            except PositionsRefused as problem:
                if problem.right or time.monotonic() > deadline:
                    raise
            await self._loop.sleep(LONGEST_PAUSE_SECONDS)

    async def end(self, identity: ProducerIdentity, *, committed: bool, transactions_v2: bool) -> ProducerIdentity:
        """Commit or abort; the pair to go on with. OutcomeUnknown when the answer to a commit is lost: never asked twice.

        An abort is: should the first request arrive late, its epoch is an old one.
        """

        async def ask(node: int) -> tuple[int, Any]:
            try:
                answer = await self._connection.send(
                    EndTxnRequest(
                        transactional_id=self._transactional_id,
                        producer_id=identity.producer_id,
                        producer_epoch=identity.epoch,
                        committed=committed,
                        max_version=5 if transactions_v2 else V1_END_TXN,
                    ),
                    node,
                )
            except RequestLost as problem:
                if not committed:
                    raise
                raise OutcomeUnknown(f"EndTxn: {problem}") from problem
            return answer.error_code, answer

        answer = await self._until_settled("EndTxn", TRANSACTION_COORDINATOR, ask)
        if transactions_v2 and answer.producer_id >= 0:
            return ProducerIdentity(answer.producer_id, answer.producer_epoch)
        return identity

    async def positions(self, partitions: Iterable[tuple[str, int]] | None, *, settled: bool = True) -> dict[tuple[str, int], Position]:
        """Committed positions of the group (None: of all its partitions); partitions without one are absent.

        `settled`: wait for offset commits of transactions that are not decided yet, instead of taking the ones before them.
        """
        topic_type = OffsetFetchRequest.OffsetFetchRequestTopic
        group_type = OffsetFetchRequest.OffsetFetchRequestGroup
        by_topic = None if partitions is None else _grouped(partitions)

        async def ask(node: int) -> tuple[int, Any]:
            answer = await self._connection.send(
                OffsetFetchRequest(
                    group_id=self._group,
                    topics=None
                    if by_topic is None
                    else [topic_type(name=topic, partition_indexes=numbers) for topic, numbers in by_topic.items()],
                    groups=[
                        group_type(
                            group_id=self._group,
                            member_id=None,
                            member_epoch=-1,
                            topics=None
                            if by_topic is None
                            else [
                                group_type.OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
                                for topic, numbers in by_topic.items()
                            ],
                        )
                    ],
                    require_stable=settled,
                    max_version=OFFSET_FETCH_BY_NAME,
                ),
                node,
            )
            group = answer.groups[0] if answer.groups else answer
            codes = [(topic.name, part.partition_index, part.error_code) for topic in group.topics for part in topic.partitions]
            code = group.error_code or _worst([entry for entry in codes if entry[2] not in {UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID}])
            return (NONE if code == GROUP_ID_NOT_FOUND else code), group

        group = await self._until_settled("OffsetFetch", GROUP_COORDINATOR, ask)
        return {
            (topic.name, part.partition_index): Position(part.committed_offset, part.committed_leader_epoch, part.metadata or "")
            for topic in group.topics
            for part in topic.partitions
            if part.committed_offset >= 0
        }

    async def _until_settled(self, what: str, kind: int, ask: Callable[[int], Awaitable[tuple[int, Any]]]) -> Any:
        deadline = time.monotonic() + COORDINATION_SECONDS
        pause, problem = FIRST_PAUSE_SECONDS, ""
        while time.monotonic() < deadline:
            try:
                code, answer = await ask(await self._node(kind))
            except (RequestNotSent, RequestLost) as failure:
                self._nodes.pop(kind, None)
                problem = str(failure)
            else:
                if code == NONE:
                    return answer
                if code not in RETRIABLE:
                    raise self._refusal(what, code)
                if code != CONCURRENT_TRANSACTIONS:
                    self._nodes.pop(kind, None)
                problem = f"error {code}"
            self._connection.require_answers()
            await self._loop.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        raise ClusterUnreachable(
            f"cluster {self._connection.alias}: {what} for {self._transactional_id} "
            f"did not succeed in {COORDINATION_SECONDS:.0f} s: {problem}"
        )

    async def _node(self, kind: int) -> int:
        if kind not in self._nodes:
            key = self._transactional_id if kind == TRANSACTION_COORDINATOR else self._group
            answer = await self._connection.send(FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key]))
            found = answer.coordinators[0] if answer.coordinators else answer
            if found.error_code in REFUSALS:
                raise self._refusal("FindCoordinator", found.error_code)
            if found.error_code != NONE:
                raise RequestNotSent(f"cluster {self._connection.alias}: no coordinator yet for {key}: error {found.error_code}")
            self._nodes[kind] = found.node_id
        return self._nodes[kind]

    def _refusal(self, what: str, code: int) -> Exception:
        if code in FENCING:
            return Fenced(f"{what} for {self._transactional_id}: error {code}")
        if code in REFUSALS:
            rights = {
                TOPIC_REFUSED: "Describe on the topics that it is about",
                GROUP_REFUSED: f"Read on group {self._group}",
                CLUSTER_REFUSED: "IdempotentWrite on the cluster",
                TRANSACTIONAL_ID_REFUSED: f"Write on transactional id {self._transactional_id}",
            }
            return self._connection.denied(what, rights[code])
        if code == INVALID_TRANSACTION_TIMEOUT:
            return ConfigError(
                f"cluster {self._connection.alias}: transaction.max.timeout.ms is below {TRANSACTION_MILLISECONDS} ms: raise it"
            )
        return OutcomeUnknown(f"{what} for {self._transactional_id}: error {code}")


async def idempotent_identity(connection: ClusterConnection) -> ProducerIdentity:
    """A producer id of no transactional id, for writing at least once. NotAuthorized, or OutcomeUnknown."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0, producer_id=-1, producer_epoch=-1, max_version=5)
    answer = await connection.send(request)
    if answer.error_code == CLUSTER_REFUSED:
        raise connection.denied("writing without a transaction", "IdempotentWrite on the cluster")
    if answer.error_code:
        raise OutcomeUnknown(f"InitProducerId: error {answer.error_code}")
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


def _grouped(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return by_topic


def _refuse_denied(codes: Iterable[tuple[str, int, int]], right: str) -> None:
    refused = tuple((topic, number) for topic, number, code in codes if code == TOPIC_REFUSED)
    if refused:
        raise PositionsRefused(refused, right)


def _worst(codes: Iterable[tuple[str, int, int]]) -> int:
    """The first code that no retry cures, else any code that is not NONE."""
    seen = [code for _, _, code in codes if code != NONE]
    lasting = [code for code in seen if code not in RETRIABLE]
    return (lasting or seen or [NONE])[0]
