"""Requests of a lane to coordinators: producer ids, partitions of transactions, positions, EndTxn.

A broker fences by compare-and-set on the pair (producer id, epoch): it refuses a conditional init, or any other request, whose pair is not
the current one. Here this is `Fenced`. Ferry repeats most requests until a deadline, but not EndTxn and TxnOffsetCommit: before KIP-890
transactions share an epoch, so a request could arrive in the next transaction and set its position back. If their answer is lost, the
result is `OutcomeUnknown`. The caller then calls init with its pair (KIP-360), and reads the positions again.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kafka.protocol.admin.transactions import DescribeTransactionsRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from ferry import clock
from ferry.clusters.groups.committed_offsets import BATCH_BYTES, K, OffsetBatches, Offsets, fetch_request, fetched_offsets, topics_to_commit
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.groups.group_requests import ANY_BROKER, GROUP_COORDINATOR, TRANSACTION_COORDINATOR, find_coordinators
from ferry.clusters.net import error_policy
from ferry.clusters.net.backoff import doubling
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import ASKED_AGAIN, DESCRIBE_TRANSACTIONS, FIND_COORDINATOR, Action, RequestKind
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.leaders import GONE_SECONDS
from ferry.clusters.net.outage import PATIENCE_SECONDS
from ferry.clusters.net.partitions import TopicPartition, grouped, partitions_of
from ferry.clusters.net.shared_connection import Asked, ConnectedCluster
from ferry.errors import ClusterUnreachable

# A broker aborts an abandoned transaction of Ferry after this time, so readers of the target never wait longer for it.
TRANSACTION_MILLISECONDS = 60_000
# Each Coordinator asks for less by up to this, by chance: the time-out that the target shows then says whose request was the last.
CHANCE_MILLISECONDS = 1_000
# Much longer than a coordinator needs to move.
COORDINATION_SECONDS = PATIENCE_SECONDS
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 1.0

# Versions with names instead of topic ids, and those before KIP-890, which the cluster's feature level may require.
TXN_OFFSET_COMMIT_BY_NAME, V1_TXN_OFFSET_COMMIT, V1_END_TXN = 5, 4, 4


class ProducerIdentity(NamedTuple):
    """Producer id and epoch, by which a broker fences."""

    producer_id: int
    epoch: int


NO_IDENTITY = ProducerIdentity(-1, -1)


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


# Error codes of one answer, with topic and partition; without topic for the whole request.
Codes = Sequence[tuple[str, int, int]]


def _whole(answer: Any) -> tuple[Codes, Any]:
    return [("", -1, answer.error_code)], answer


class Coordinator:
    """One transactional id and one group of one cluster."""

    def __init__(
        self, loop: EventLoop, connection: ClusterConnection, transactional_id: str, group: str, beside: Sequence[str] = ()
    ) -> None:
        """`beside`: other transactional ids whose coordinators to look up with this one's, because they are needed soon."""
        self._loop, self._connection = loop, connection
        self._transactional_id, self._group, self._beside = transactional_id, group, beside
        # How long a request is repeated; None: COORDINATION_SECONDS. Callers that have waited already set a shorter time.
        self.patience_seconds: float | None = None
        self._milliseconds = TRANSACTION_MILLISECONDS - 1 - int(clock.token_hex(4), 16) % CHANCE_MILLISECONDS
        self._batch_bytes = BATCH_BYTES  # size of one TxnOffsetCommit; smaller after the broker has refused one

    @property
    def transactional_id(self) -> str | None:
        """The id that Produce requests carry."""
        return self._transactional_id

    async def transactions_v2(self) -> bool:
        """Whether the finalized `transaction.version` is 2 or more (KIP-890): then Ferry need not add partitions to a transaction."""
        return (await self._connection.features()).get("transaction.version", 0) >= 2

    async def look_up(self) -> None:
        """Find the coordinator of the transactional id, so that the next request need not. If nobody knows it, that request asks again."""
        with suppress(RequestNotSent, RequestLost):
            await self._node(TRANSACTION_COORDINATOR)

    async def init(self, identity: ProducerIdentity = NO_IDENTITY) -> ProducerIdentity:
        """Abort an open transaction and get the next epoch; with a pair only if it is still the current one (otherwise Fenced)."""
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=self._milliseconds,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            # Before version 3 the request has no pair, so the broker would treat every holder as a new one (KIP-360).
            min_version=3,
            max_version=5,
        )
        answer = await self._until_final(error_policy.INIT_PRODUCER_ID, TRANSACTION_COORDINATOR, request)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    async def current(self) -> ProducerIdentity | None:
        """The pair that the coordinator has now, unchanged. None if it does not say: brokers before 3.0 cannot (KIP-664)."""
        told = await self._described()
        return None if told is None else ProducerIdentity(told.producer_id, told.producer_epoch)

    async def is_own(self) -> bool:
        """Whether the last init of the id was one of this Coordinator. False if the coordinator does not say."""
        told = await self._described()
        return told is not None and told.transaction_timeout_ms == self._milliseconds

    async def _described(self) -> Any:
        """What the coordinator shows of the id, or None."""
        with suppress(RequestNotSent, RequestLost):
            node = await self._node(TRANSACTION_COORDINATOR)
            answer = await self._connection.send(DescribeTransactionsRequest(transactional_ids=[self._transactional_id]), node)
            (told,) = answer.transaction_states
            if DESCRIBE_TRANSACTIONS.action(told.error_code) is Action.GO_ON:
                return told
        return None

    async def prove(self, identity: ProducerIdentity, *, transactions_v2: bool) -> ProducerIdentity:
        """Get the next epoch if the pair is still current, otherwise Fenced. Abort an open transaction, unless it was committed already.

        It does not use init alone, for two reasons. On init the broker aborts an open transaction even for a pair that it then refuses, so
        a superseded holder would disturb its successor. And before KIP-890 it fences the holder whose transaction it aborts. EndTxn does
        neither. (A process that stands still between the two may do both.)
        """
        try:
            return await self.init(await self.end(identity, committed=False, transactions_v2=transactions_v2))
        except OutcomeUnknown:  # INVALID_TXN_STATE: nothing is open, or it was committed
            return await self.init(await self._after_its_commit(identity) if transactions_v2 else identity)

    async def _after_its_commit(self, identity: ProducerIdentity) -> ProducerIdentity:
        """The pair that the commit of `identity` answered, after EndTxn(abort) was refused because of that commit (KIP-890).

        A second EndTxn(commit) can commit nothing: `identity` is no longer the current pair. If nobody has taken the id since, the answer
        is the pair after the commit. It has a new producer id if the epochs had reached their end. A coordinator that has restarted still
        knows this pair. But it does not know the epoch before it (TransactionLog), and so refuses an init with `identity`.
        """
        return await self.end(identity, committed=True, transactions_v2=True, again=True)

    async def add_partitions(self, identity: ProducerIdentity, partitions: Iterable[tuple[str, int]]) -> None:
        """Register remote partitions with the transaction (only needed before KIP-890). PositionsRefused without Write."""
        topic_type = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[topic_type(name=topic, partitions=numbers) for topic, numbers in grouped(partitions).items()],
            max_version=3,
        )

        def read(answer: Any) -> tuple[Codes, Any]:
            codes = [
                (result.name, part.partition_index, part.partition_error_code)
                for result in answer.results_by_topic_v3_and_below
                for part in result.results_by_partition
            ]
            return codes, answer

        await self._until_final(error_policy.ADD_PARTITIONS_TO_TXN, TRANSACTION_COORDINATOR, request, read)

    async def add_offsets(self, identity: ProducerIdentity) -> None:
        """Register the group with the transaction (only needed before KIP-890)."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id, producer_id=identity.producer_id, producer_epoch=identity.epoch, group_id=self._group
        )
        await self._until_final(error_policy.ADD_OFFSETS_TO_TXN, TRANSACTION_COORDINATOR, request)

    async def commit_positions(self, identity: ProducerIdentity, positions: Offsets[K], *, transactions_v2: bool) -> None:
        """Add positions, by remote partition, to the transaction. PositionsRefused if a partition stays unknown or may not be read.

        Sends as many requests as the broker's batch limit requires; all belong to the same transaction. OutcomeUnknown if an answer is
        lost: Ferry does not repeat that request. After an answer it may repeat a request, because the refused one cannot arrive any more.
        ReplicatorActive or ConfigError if the broker takes no position at all.
        """
        topic_type = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic

        def request(batch: Offsets[K]) -> TxnOffsetCommitRequest:
            return TxnOffsetCommitRequest(
                transactional_id=self._transactional_id,
                group_id=self._group,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                topics=topics_to_commit(topic_type, topic_type.TxnOffsetCommitRequestPartition, batch),
                max_version=TXN_OFFSET_COMMIT_BY_NAME if transactions_v2 else V1_TXN_OFFSET_COMMIT,
            )

        await self._commit_in_batches(error_policy.TXN_OFFSET_COMMIT, request, positions, repeatable=False)

    async def _commit_in_batches(
        self, kind: RequestKind, request: Callable[[Offsets[K]], Any], positions: Offsets[K], *, repeatable: bool
    ) -> None:
        batches = OffsetBatches(self._group, positions, self._batch_bytes)

        def read(answer: Any) -> tuple[Codes, Any]:
            codes = [(*key, part.error_code) for key, part in partitions_of(answer.topics)]
            return [] if batches.refused(kind.gravest(code for _, _, code in codes)) else codes, answer

        for batch in batches:
            await self._until_final(kind, GROUP_COORDINATOR, request(batch), read, repeatable=repeatable)
        self._batch_bytes = batches.limit

    async def end(self, identity: ProducerIdentity, *, committed: bool, transactions_v2: bool, again: bool = False) -> ProducerIdentity:
        """Commit or abort; the pair to continue with. OutcomeUnknown if the answer to a commit is lost: Ferry does not repeat a commit.

        It repeats an abort, so the caller must get the next epoch by `init`: otherwise the first request may arrive late, and abort the
        next transaction. `again`: the caller knows that a late commit is refused, too.
        """
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=committed,
            max_version=5 if transactions_v2 else V1_END_TXN,
        )
        answer = await self._until_final(error_policy.END_TXN, TRANSACTION_COORDINATOR, request, repeatable=again or not committed)
        if transactions_v2 and answer.producer_id >= 0:
            return ProducerIdentity(answer.producer_id, answer.producer_epoch)
        return identity

    async def positions(
        self, partitions: Iterable[tuple[str, int]] | None, *, stable: bool = True
    ) -> dict[tuple[str, int], CommittedOffset]:
        """Committed positions of the group for these partitions (None: all), without partitions that have none.

        `stable`: wait for offset commits of undecided transactions; otherwise the offsets before them.
        """

        def read(answer: Any) -> tuple[Codes, Any]:
            found = fetched_offsets(answer, [self._group])[self._group]
            return [("", -1, found.error_code), *((*key, code) for key, (code, _) in found.partitions.items())], found

        request = fetch_request([self._group], partitions, stable=stable)
        found = await self._until_final(error_policy.OFFSET_FETCH, GROUP_COORDINATOR, request, read)
        return {key: committed for key, (_, committed) in found.partitions.items() if committed.offset >= 0}

    async def idempotent_identity(self) -> ProducerIdentity:
        """A producer id without transactional id, for writing at least once."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0, max_version=5)
        answer = await self._until_final(error_policy.INIT_PRODUCER_ID, ANY_BROKER, request)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    async def _until_final(
        self, request: RequestKind, kind: int, message: Any, read: Callable[[Any], tuple[Codes, Any]] = _whole, *, repeatable: bool = True
    ) -> Any:
        """The value that `read` takes from the answer, beside the codes. Not `repeatable`: OutcomeUnknown if the answer is lost."""
        seconds = COORDINATION_SECONDS if self.patience_seconds is None else self.patience_seconds
        deadline = clock.monotonic() + seconds
        pauses, problem, gone_until = doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS), "", 0.0
        while (now := clock.monotonic()) < deadline:
            try:
                node = await self._node(kind)
                codes, answer = read(await self._answer(request, message, node, repeatable=repeatable))
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
            if self._connection.coordinator_outage.seconds(clock.monotonic()) >= seconds:
                break
            await self._loop.sleep(next(pauses))
        raise ClusterUnreachable(
            f"cluster {self._connection.alias}: {request.name} for {self._transactional_id} did not succeed in {seconds:.0f} s: {problem}"
        )

    async def _answer(self, request: RequestKind, message: Any, node: int | None, *, repeatable: bool) -> Any:
        try:
            return await self._connection.send(message, node)
        except RequestLost as problem:
            if repeatable:
                raise
            raise OutcomeUnknown(f"{request.name}: {problem}") from problem

    def _note_outage(self, kind: int, asked: float) -> None:
        self._connection.coordinators.pop(self._key(kind), None)
        self._connection.coordinator_outage.failed(asked, clock.monotonic())

    async def _node(self, kind: int) -> int | None:
        if kind == ANY_BROKER:
            return None
        _, name = key = self._key(kind)
        if key not in self._connection.coordinators:
            beside = self._beside if kind == TRANSACTION_COORDINATOR else ()
            found = await find_coordinators(self._connection, [name, *beside], kind)
            self._connection.coordinators |= {(kind, other): place for other, problem, place in found if not problem}
            code = next(code for other, code, _ in found if other == name)
            if FIND_COORDINATOR.action(code) in ASKED_AGAIN:
                told = FIND_COORDINATOR.told(code)
                raise RequestNotSent(f"cluster {self._connection.alias}: no coordinator yet for {name}: {told}")
            if code:
                raise self._refusal(FIND_COORDINATOR, [("", -1, code)], code)
        return self._connection.coordinators[key]

    def _key(self, kind: int) -> tuple[int, str]:
        return kind, self._transactional_id if kind == TRANSACTION_COORDINATOR else self._group

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


def ask_positions(
    cluster: ConnectedCluster, group: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = True
) -> Asked[dict[TopicPartition, int]]:
    """Committed offsets of these partitions (None: all) of `group`, as `Coordinator.positions` reads them; empty for an unknown group."""

    async def ask(connection: ClusterConnection) -> dict[TopicPartition, int]:
        found = await Coordinator(connection.loop, connection, "", group).positions(partitions, stable=stable)
        return {TopicPartition(*key): position.offset for key, position in found.items()}

    return cluster.begin_asking(ask)
