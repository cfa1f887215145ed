"""What an operator does about hanging transactions: find them, and abort each of their partitions.

A broker that is killed within milliseconds of EndTxn may come back without knowing its partitions yet, take them for deleted, and call the
transaction complete without ever writing its markers (docs/decisions/007-hanging-transactions.md). That is the broker's defect; the series
counts it, does what the documentation tells an operator to do, and goes on.

It may be asked while producers are at work: a transaction hangs only if a partition shows it open both before and after the coordinator
called it ended. An open one is known to the coordinator before its first record, and ended only after its last marker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka import TopicPartition
from kafka.admin import AbortTransactionSpec, KafkaAdminClient

# States in which a coordinator still means to write markers.
UNDECIDED = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


class _Open(NamedTuple):
    """A transaction as one partition shows it."""

    partition: TopicPartition
    producer_id: int
    epoch: int
    start: int
    coordinator_epoch: int


def settle_hanging(bootstrap: str, prefix: str) -> list[str]:
    """Abort the hanging transactions of the transactional ids with `prefix`; those ids."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        before = _open_transactions(client)
        ids = {
            entry.producer_id: entry.transactional_id
            for listing in client.list_transactions().values()
            for entry in listing
            if entry.transactional_id.startswith(prefix) and entry.state.value not in UNDECIDED
        }
        hanging = [entry for entry in _open_transactions(client) if entry in before and entry.producer_id in ids]
        for entry in hanging:
            client.abort_transaction(AbortTransactionSpec(entry.partition, entry.producer_id, entry.epoch, entry.coordinator_epoch))
        return sorted({ids[entry.producer_id] for entry in hanging})
    finally:
        client.close()


def _open_transactions(client: KafkaAdminClient) -> set[_Open]:
    return {
        _Open(partition, state.producer_id, state.producer_epoch, state.current_transaction_start_offset, state.coordinator_epoch)
        for partition, found in client.describe_producers(_partitions(client)).items()
        for state in found.active_producers
        if state.current_transaction_start_offset >= 0
    }


def _partitions(client: KafkaAdminClient) -> Iterable[TopicPartition]:
    return [TopicPartition(topic["name"], part["partition_index"]) for topic in client.describe_topics() for part in topic["partitions"]]
