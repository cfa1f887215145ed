"""Open transactions, which hold back the last stable offset of a partition (KIP-664); read only.

The leader of a partition answers DescribeProducers; this needs Read on the topic. Only the coordinator of a transaction knows the
transactional id of a producer id. So Ferry sends ListTransactions and DescribeTransactions to every broker; brokers leave out ids that the
user may not describe.

A coordinator writes markers after its answer to EndTxn. So Ferry asks the partition before and after the coordinator, and a transaction
counts as open only if the partition shows it both times. Otherwise Ferry would take one that has just ended for one that its coordinator
has forgotten.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafka.protocol.admin.transactions import DescribeProducersRequest, DescribeTransactionsRequest, ListTransactionsRequest

from ferry.clusters.logs.held_back import OpenTransaction
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent, answered
from ferry.clusters.net.error_policy import ASKED_AGAIN, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS, Action
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.partitions import TopicPartition, grouped, partitions_of
from ferry.clusters.net.shared_connection import ConnectedCluster
from ferry.errors import FerryError

# States in which a coordinator will still write markers (org.apache.kafka.coordinator.transaction.TransactionState).
ONGOING = "Ongoing"
UNDECIDED = frozenset({ONGOING, "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})

# Open transactions of a partition, ordered by first offset, or a text that says why Ferry cannot see them.
Told = tuple[OpenTransaction, ...] | str
Found = Mapping[TopicPartition, Told]


def open_transactions(cluster: ConnectedCluster, partitions: Iterable[TopicPartition]) -> Found:
    """The open transactions of each partition. Raises nothing."""
    wanted = sorted(partitions)
    try:
        return cluster.ask(_ask, wanted) if wanted else {}
    except (FerryError, RequestNotSent, RequestLost) as problem:
        return dict.fromkeys(wanted, str(problem))


async def open_of(
    connection: ClusterConnection, leaders: Leaders, partitions: Iterable[TopicPartition], producer_ids: Collection[int]
) -> dict[TopicPartition, OpenTransaction | None]:
    """By partition: the first open transaction of these producer ids, or None. It lacks the coordinator's information.

    Left out: partitions whose leader did not answer now. None also if no later request can succeed: the user may not see the producers, or
    the brokers do not offer the request (before 2.8). RequestNotSent or RequestLost.
    """
    wanted = list(partitions)
    if DescribeProducersRequest.API_KEY not in await connection.newest():
        return dict.fromkeys(wanted)
    return {
        key: None if isinstance(entries, str) else next((entry for entry in entries if entry.producer_id in producer_ids), None)
        for key, entries in (await _of_leaders(connection, leaders, wanted)).items()
    }


async def _ask(connection: ClusterConnection, wanted: list[TopicPartition]) -> Found:
    leaders = Leaders(connection)
    await leaders.ask_two({key.topic for key in wanted})
    unknown: dict[TopicPartition, Told] = dict.fromkeys(wanted, "the partition has no leader that tells of its producers")
    found = unknown | await _of_leaders(connection, leaders, wanted)
    ids = {entry.producer_id for entries in found.values() if not isinstance(entries, str) for entry in entries}
    known = await _coordinated(connection, ids) if ids else {}
    still = await _of_leaders(connection, leaders, [key for key, entries in found.items() if entries and not isinstance(entries, str)])
    return {
        key: entries
        if isinstance(entries, str)
        else tuple(_completed(key, entry, known.get(entry.producer_id)) for entry in entries if _is_open(entry, still.get(key, "")))
        for key, entries in found.items()
    }


def _is_open(entry: OpenTransaction, later: Told) -> bool:
    """Whether the partition showed the transaction again. If the second request failed, the first answer counts."""
    return isinstance(later, str) or any((one.producer_id, one.start_offset) == (entry.producer_id, entry.start_offset) for one in later)


async def _of_leaders(connection: ClusterConnection, leaders: Leaders, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Told]:
    """The answers of the leaders; without partitions that have no leader, or whose leader does not answer now."""
    found: dict[TopicPartition, Told] = {}
    topic_type = DescribeProducersRequest.TopicRequest
    asked = []
    for node, keys in leaders.by_node(partitions).items():
        topics = [topic_type(name=topic, partition_indexes=numbers) for topic, numbers in grouped(keys).items()]
        asked.append(connection.loop.start(connection.send, DescribeProducersRequest(topics=topics), node))
    for answer in await answered(asked):
        for key, part in partitions_of(answer.topics):
            if DESCRIBE_PRODUCERS.action(part.error_code) not in ASKED_AGAIN:
                found[key] = _refusal(connection, key.topic, part) if part.error_code else _open(part)
    return found


def _refusal(connection: ClusterConnection, topic: str, part: Any) -> str:
    if DESCRIBE_PRODUCERS.action(part.error_code) is Action.DENIED:
        return f"its producers are hidden: {connection.granting(DESCRIBE_PRODUCERS.right(part.error_code, topic=topic))}"
    return f"its producers cannot be described: {DESCRIBE_PRODUCERS.told(part.error_code)} {part.error_message or ''}".rstrip()


def _open(part: Any) -> tuple[OpenTransaction, ...]:
    entries = [
        OpenTransaction(entry.producer_id, entry.producer_epoch, entry.current_txn_start_offset, entry.last_timestamp)
        for entry in part.active_producers
        if entry.current_txn_start_offset >= 0
    ]
    return tuple(sorted(entries, key=lambda entry: entry.start_offset))


async def _coordinated(connection: ClusterConnection, producer_ids: Iterable[int]) -> dict[int, Any]:
    """What coordinators say about these producer ids, by id; without ids that no coordinator describes."""
    asked = [connection.loop.start(_coordinated_by, connection, node, sorted(producer_ids)) for node in connection.brokers()]
    return {producer_id: told for each in await answered(asked) for producer_id, told in each.items()}


async def _coordinated_by(connection: ClusterConnection, node: int, producer_ids: list[int]) -> dict[int, Any]:
    listed = await connection.send(ListTransactionsRequest(producer_id_filters=producer_ids, min_version=0), node)
    known = LIST_TRANSACTIONS.action(listed.error_code) is Action.GO_ON
    names = [entry.transactional_id for entry in listed.transaction_states] if known else []
    answer = await connection.send(DescribeTransactionsRequest(transactional_ids=names), node) if names else None
    told = [] if answer is None else answer.transaction_states
    return {entry.producer_id: entry for entry in told if DESCRIBE_TRANSACTIONS.action(entry.error_code) is Action.GO_ON}


def _completed(key: TopicPartition, entry: OpenTransaction, known: Any) -> OpenTransaction:
    """`entry` with what its coordinator says. A transaction without this partition is another one (TransactionsCommand.java)."""
    if known is None:
        return entry
    found = replace(entry, transactional_id=known.transactional_id, state=known.transaction_state)
    holds = any(topic.topic == key.topic and key.partition in topic.partitions for topic in known.topics)
    if known.transaction_state not in UNDECIDED or not holds:
        return found
    return replace(found, started=max(0, known.transaction_start_time_ms), timeout=known.transaction_timeout_ms)
