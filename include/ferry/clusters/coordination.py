"""Requests of a lane to coordinators: producer ids, partitions of transactions, positions, EndTxn.

A broker fences by compare-and-set on the pair (producer id, epoch): it refuses a conditional init, or any other request, whose pair is not
the current one. Here this is `Fenced`. Ferry repeats most requests until a deadline, but not EndTxn and TxnOffsetCommit: before KIP-890
transactions share an epoch, so a request could arrive in the next transaction and set its position back. If their answer is lost, the
result is `OutcomeUnknown`. The caller then calls init with its pair (KIP-360), and reads the positions again.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from ferry.clusters.answers import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    ASKED_AGAIN,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
    Action,
    RequestKind,
)
from ferry.clusters.connections import ClusterConnection, EventLoop, RequestLost, RequestNotSent, ask_cluster
from ferry.clusters.leaders import GONE_SECONDS
from ferry.clusters.offset_batches import BATCH_BYTES, OffsetBatches
from ferry.clusters.offset_fetch import fetch_offsets
from ferry.clusters.partitions import TopicPartition, by_topic
from ferry.clusters.pauses import doubling
from ferry.clusters.unreachable import PATIENCE_SECONDS
from ferry.config import Cluster
from ferry.errors import ClusterUnreachable

# A broker aborts an abandoned transaction of Ferry after this time, so readers of the target never wait longer for it.
TRANSACTION_MILLISECONDS = 60_000
# Much longer than a coordinator needs to move.
COORDINATION_SECONDS = PATIENCE_SECONDS
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 1.0

TRANSACTION_COORDINATOR, GROUP_COORDINATOR, ANY_BROKER = 1, 0, -1
# Versions with names instead of topic ids, and those before KIP-890, which the cluster's feature level may require.
TXN_OFFSET_COMMIT_BY_NAME, V1_TXN_OFFSET_COMMIT, V1_END_TXN = 5, 4, 4


class ProducerIdentity(NamedTuple):
    """Producer id and epoch, by which a broker fences."""

    producer_id: int
    epoch: int


NO_IDENTITY = ProducerIdentity(-1, -1)


class Position(NamedTuple):
    """A committed group offset: next upstream offset, source leader epoch (-1 unknown) and the mark of the transaction that wrote it."""

    offset: int
    leader_epoch: int
    mark: str


class Fenced(Exception):
    """The broker refused the pair: somebody else holds the transactional id now, or the transaction timed out."""


class OutcomeUnknown(Exception):
    """The broker may or may not have executed a request; `partition` (topic, number) if one caused the failure."""

    def __init__(self, problem: str, partition: tuple[str, int] | None = None) -> None:
        super().__init__(problem)
        self.partition = partition


class PositionsRefused(Exception):
    """The target has deleted these remote partitions, or a right on their topics is missing (`right`, as Read)."""

    def __init__(self, partitions: tuple[tuple[str, int], ...], right: str = "") -> None:
        super().__init__(f"{right} is missing on: {partitions}" if right else f"unknown at the target: {partitions}")
        self.partitions = partitions
        self.right = right


# Error codes of one answer: topic, partition and code; without topic for the whole request.
Codes = Sequence[tuple[str, int, int]]


class Coordinator:
    """One transactional id and one group of one cluster."""

    def __init__(self, loop: EventLoop, connection: ClusterConnection, transactional_id: str, group: str) -> None:
        self._loop = loop
        self._connection = connection
        self._transactional_id = transactional_id
        self._group = group
        self._nodes: dict[int, int] = {}
        # How long a request is repeated; None: COORDINATION_SECONDS. Callers that have waited already set a shorter time.
        self.patience_seconds: float | None = None
        # Size of one TxnOffsetCommit; smaller after the broker has refused one.
        self._batch_bytes = BATCH_BYTES

    async def init(self, identity: ProducerIdentity = NO_IDENTITY) -> ProducerIdentity:
        """Abort an open transaction and get the next epoch; with a pair only if it is still the current one (otherwise Fenced)."""

        async def ask(node: int | None) -> tuple[Codes, Any]:
            answer = await self._connection.send(
                InitProducerIdRequest(
                    transactional_id=self._transactional_id,
                    transaction_timeout_ms=TRANSACTION_MILLISECONDS,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    # Before version 3 the request has no pair, so the broker would treat every holder as a new one (KIP-360).
                    min_version=3,
                    max_version=5,
                ),
                node,
            )
            return _whole(answer.error_code), answer

        answer = await self._until_settled(INIT_PRODUCER_ID, TRANSACTION_COORDINATOR, ask)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    async def settle(self, identity: ProducerIdentity, *, transactions_v2: bool) -> ProducerIdentity:
        """Like `init` with a pair; aborts an open transaction, unless it was committed already.

        Not by init alone, for two reasons. On init the broker aborts an open transaction even for a pair that it then refuses, so a
        superseded holder would disturb its successor. And before KIP-890 it fences the holder whose transaction it aborts. EndTxn does
        neither.
        """
        try:
            return await self.init(await self.end(identity, committed=False, transactions_v2=transactions_v2))
        except OutcomeUnknown:  # INVALID_TXN_STATE: nothing is open, or it was committed
            return await self._after_a_commit(identity, transactions_v2=transactions_v2)

    async def _after_a_commit(self, identity: ProducerIdentity, *, transactions_v2: bool) -> ProducerIdentity:
        """The next pair, if `identity` may have committed and the answer was lost.

        A coordinator that has restarted since then no longer knows the previous pair (TransactionLog does not hold it), and refuses it
        here; EndTxn in `settle` counts back from the current pair. With KIP-890 a commit raises the epoch by one, so the current pair is
        known.
        """
        try:
            return await self.init(identity)
        except Fenced:
            if not transactions_v2:
                raise
            return await self.init(identity._replace(epoch=identity.epoch + 1))

    async def add_partitions(self, identity: ProducerIdentity, partitions: Iterable[tuple[str, int]]) -> None:
        """Register remote partitions with the transaction (only needed before KIP-890). PositionsRefused without Write."""
        topic_type = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        topics = [topic_type(name=topic, partitions=numbers) for topic, numbers in by_topic(partitions).items()]

        async def ask(node: int | None) -> tuple[Codes, Any]:
            answer = await self._connection.send(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=self._transactional_id,
                    v3_and_below_producer_id=identity.producer_id,
                    v3_and_below_producer_epoch=identity.epoch,
                    v3_and_below_topics=topics,
                    max_version=3,
                ),
                node,
            )
            codes = [
                (result.name, part.partition_index, part.partition_error_code)
                for result in answer.results_by_topic_v3_and_below
                for part in result.results_by_partition
            ]
            return codes, answer

        await self._until_settled(ADD_PARTITIONS_TO_TXN, TRANSACTION_COORDINATOR, ask)

    async def add_offsets(self, identity: ProducerIdentity) -> None:
        """Register the group with the transaction (only needed before KIP-890)."""

        async def ask(node: int | None) -> tuple[Codes, Any]:
            answer = await self._connection.send(
                AddOffsetsToTxnRequest(
                    transactional_id=self._transactional_id,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    group_id=self._group,
                ),
                node,
            )
            return _whole(answer.error_code), answer

        await self._until_settled(ADD_OFFSETS_TO_TXN, TRANSACTION_COORDINATOR, ask)

    async def commit_positions(
        self, identity: ProducerIdentity, positions: Mapping[tuple[str, int], Position], *, transactions_v2: bool
    ) -> None:
        """Add positions, by remote partition, to the transaction. PositionsRefused if a partition stays unknown or may not be read.

        Sends as many requests as the broker's batch limit requires; all belong to the same transaction. OutcomeUnknown if an answer is
        lost: Ferry does not repeat that request. After an answer it may repeat a request, because the refused one cannot arrive any more.
        ReplicatorActive or ConfigError if the broker takes no position at all.
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
        """Whether the broker took all of them; False: it took none, and may take fewer at once."""
        topic_type = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
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
            for topic, numbers in by_topic(positions).items()
        ]

        async def ask(node: int | None) -> tuple[Codes, Any]:
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
            code = TXN_OFFSET_COMMIT.gravest(found for _, _, found in codes)
            return ([], None) if batches.refused(positions, code) else (codes, answer)

        return await self._until_settled(TXN_OFFSET_COMMIT, GROUP_COORDINATOR, ask) is not None

    async def end(self, identity: ProducerIdentity, *, committed: bool, transactions_v2: bool) -> ProducerIdentity:
        """Commit or abort; the pair to continue with. OutcomeUnknown if the answer to a commit is lost: Ferry does not repeat a commit.

        It repeats an abort: if the first request arrives late, its epoch is old.
        """

        async def ask(node: int | None) -> tuple[Codes, Any]:
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
            return _whole(answer.error_code), answer

        answer = await self._until_settled(END_TXN, TRANSACTION_COORDINATOR, ask)
        if transactions_v2 and answer.producer_id >= 0:
            return ProducerIdentity(answer.producer_id, answer.producer_epoch)
        return identity

    async def positions(self, partitions: Iterable[tuple[str, int]] | None, *, settled: bool = True) -> dict[tuple[str, int], Position]:
        """Committed positions of the group for these partitions (None: all), without partitions that have none.

        `settled`: wait for offset commits of undecided transactions; otherwise the offsets before them.
        """
        wanted = None if partitions is None else tuple(partitions)

        async def ask(node: int | None) -> tuple[Codes, Any]:
            found = (await fetch_offsets(self._connection, node, [self._group], wanted, stable=settled))[self._group]
            return [*_whole(found.code), *((*key, code) for key, (code, _) in found.partitions.items())], found

        found = await self._until_settled(OFFSET_FETCH, GROUP_COORDINATOR, ask)
        return {
            key: Position(committed.offset, committed.leader_epoch, committed.metadata)
            for key, (_, committed) in found.partitions.items()
            if committed.offset >= 0
        }

    async def idempotent_identity(self) -> ProducerIdentity:
        """A producer id without transactional id, for writing at least once."""

        async def ask(node: int | None) -> tuple[Codes, Any]:
            request = InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=0, producer_id=-1, producer_epoch=-1, max_version=5
            )
            answer = await self._connection.send(request, node)
            return _whole(answer.error_code), answer

        answer = await self._until_settled(INIT_PRODUCER_ID, ANY_BROKER, ask)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    async def _until_settled(self, request: RequestKind, kind: int, ask: Callable[[int | None], Awaitable[tuple[Codes, Any]]]) -> Any:
        seconds = COORDINATION_SECONDS if self.patience_seconds is None else self.patience_seconds
        deadline = time.monotonic() + seconds
        pauses, problem, gone_until = doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS), "", 0.0
        while (now := time.monotonic()) < deadline:
            try:
                codes, answer = await ask(await self._node(kind))
            except (RequestNotSent, RequestLost) as failure:
                self._note_outage(kind, now)
                problem = str(failure)
            else:
                code = request.gravest(found for _, _, found in codes)
                action = request.action(code)
                if action is Action.COORDINATOR:
                    self._note_outage(kind, now)
                else:
                    self._connection.coordinator_outage.over()
                if action in {Action.GO_ON, Action.NOTHING}:
                    return answer
                if action is Action.GONE:
                    gone_until = gone_until or now + GONE_SECONDS
                if action not in ASKED_AGAIN and now >= gone_until:
                    raise self._refusal(request, codes, code)
                problem = request.told(code)
            self._connection.require_answers()
            if self._connection.coordinator_outage.seconds(time.monotonic()) >= seconds:
                break
            await self._loop.sleep(next(pauses))
        raise ClusterUnreachable(
            f"cluster {self._connection.alias}: {request.name} for {self._transactional_id} did not succeed in {seconds:.0f} s: {problem}"
        )

    def _note_outage(self, kind: int, asked: float) -> None:
        self._nodes.pop(kind, None)
        self._connection.coordinator_outage.failed(asked, time.monotonic())

    async def _node(self, kind: int) -> int | None:
        if kind == ANY_BROKER:
            return None
        if kind not in self._nodes:
            key = self._transactional_id if kind == TRANSACTION_COORDINATOR else self._group
            answer = await self._connection.send(FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key]))
            found = answer.coordinators[0] if answer.coordinators else answer
            if FIND_COORDINATOR.action(found.error_code) in ASKED_AGAIN:
                told = FIND_COORDINATOR.told(found.error_code)
                raise RequestNotSent(f"cluster {self._connection.alias}: no coordinator yet for {key}: {told}")
            if found.error_code:
                raise self._refusal(FIND_COORDINATOR, _whole(found.error_code), found.error_code)
            self._nodes[kind] = found.node_id
        return self._nodes[kind]

    def _refusal(self, request: RequestKind, codes: Codes, code: int) -> Exception:
        meaning = request.meaning(code)
        names = {"group": self._group, "id": self._transactional_id, "timeout": TRANSACTION_MILLISECONDS}
        partitions = tuple((topic, number) for topic, number, found in codes if request.meaning(found) == meaning)
        problem = f"{request.name} for {self._transactional_id}: {request.told(code, **names)}"
        match meaning.action:
            case Action.FENCED:
                return Fenced(problem)
            case Action.GONE:
                return PositionsRefused(partitions)
            case Action.DENIED if "{topic}" in meaning.told:
                return PositionsRefused(partitions, meaning.told.partition(" ")[0])
            case Action.DENIED:
                return self._connection.denied(request.name, request.right(code, **names))
            case Action.REFUSED:
                return meaning.error(f"cluster {self._connection.alias}: {problem}")
            case _:
                return OutcomeUnknown(problem)


def _whole(code: int) -> Codes:
    return [("", -1, code)]


def committed_positions(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition] | None = None, *, settled: bool = True
) -> dict[TopicPartition, int]:
    """Committed offsets of these partitions (None: all) of `group`, as `Coordinator.positions` reads them; empty for an unknown group."""

    async def ask(connection: ClusterConnection) -> dict[TopicPartition, int]:
        found = await Coordinator(connection.loop, connection, "", group).positions(partitions, settled=settled)
        return {TopicPartition(*key): position.offset for key, position in found.items()}

    return ask_cluster(cluster, ask)
