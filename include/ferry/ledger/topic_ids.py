"""Which receipts count for the topics of today (pure).

Kafka gives a topic that was deleted and created again a new id. Offsets of the old topic say nothing about the new one, so receipts that
name another id are void.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from ferry.clusters.describe import TopicDescription
from ferry.clusters.partitions import TopicPartition
from ferry.ledger.receipts import Receipt


class TopicIds(NamedTuple):
    """Ids of a source topic and of its remote topic, as receipts and heads hold them.

    `source` None: receipts of an older source topic count too. They still explain records of the remote topic.
    """

    source: str | None
    remote: str


def id_of(description: TopicDescription | None) -> str:
    """As receipts hold it: zeros for clusters without topic ids, empty when there is no such topic."""
    return "" if description is None else str(UUID(description.topic_id or str(UUID(int=0))))


def valid_receipts(receipts: Iterable[Receipt], today: Mapping[TopicPartition, TopicIds]) -> dict[TopicPartition, list[Receipt]]:
    """By source partition, the receipts that name the ids of `today`; none of partitions that `today` does not name."""
    found: dict[TopicPartition, list[Receipt]] = {}
    for receipt in receipts:
        ids = today.get(receipt.key)
        if ids is not None and receipt.remote_topic_id == ids.remote and ids.source in {None, receipt.source_topic_id}:
            found.setdefault(receipt.key, []).append(receipt)
    return found
