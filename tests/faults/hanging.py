"""What an operator does about hanging transactions: find them, and abort each of their partitions.

A broker that is killed within milliseconds of EndTxn may come back without knowing its partitions yet, take them for deleted, and call the
transaction complete without ever writing its markers (docs/decisions/007-hanging-transactions.md). That is the broker's defect; the series
counts it, does what the documentation tells an operator to do, and goes on.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka import TopicPartition
from kafka.admin import AbortTransactionSpec, KafkaAdminClient

# States in which a coordinator still means to write markers.
UNDECIDED = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


def settle_hanging(bootstrap: str, prefix: str) -> int:
    """Abort the hanging transactions of the transactional ids with `prefix`; how many there were."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        ids = {
            entry.producer_id: entry.state.value
            for listing in client.list_transactions().values()
            for entry in listing
            if entry.transactional_id.startswith(prefix)
        }
        hanging: set[int] = set()
        for partition, state in client.describe_producers(_partitions(client)).items():
            for producer in state.active_producers:
                known = ids.get(producer.producer_id)
                if producer.current_transaction_start_offset >= 0 and known is not None and known not in UNDECIDED:
                    hanging.add(producer.producer_id)
                    client.abort_transaction(
                        AbortTransactionSpec(partition, producer.producer_id, producer.producer_epoch, producer.coordinator_epoch)
                    )
        return len(hanging)
    finally:
        client.close()


def _partitions(client: KafkaAdminClient) -> Iterable[TopicPartition]:
    return [TopicPartition(topic["name"], part["partition_index"]) for topic in client.describe_topics() for part in topic["partitions"]]
