"""A source partition and its remote partition, and whether receipts and heads name the topics of today (pure).

Kafka gives a topic that was created again a new id. Offsets of the old topic say nothing about it, so receipts with another id are void.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.net.leaders import NO_TOPIC_ID
from ferry.clusters.net.partitions import TopicPartition
from ferry.ledger.receipts import Receipt, ReceiptKind

NO_ID = str(NO_TOPIC_ID)  # receipts and heads hold this for clusters without topic ids


class TopicIds(NamedTuple):
    """Ids of a source topic and of its remote topic, as receipts and heads hold them."""

    source: str
    remote: str


@dataclass(frozen=True)
class PartitionPair:
    """A source partition and its remote partition, with the ids of both topics. `remote_topic_id` None: there is no remote topic (yet)."""

    topic: str
    partition: int
    topic_id: UUID
    remote_topic: str
    remote_topic_id: UUID | None

    @property
    def key(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def remote(self) -> TopicPartition:
        return TopicPartition(self.remote_topic, self.partition)

    @cached_property
    def topic_ids(self) -> TopicIds:
        return TopicIds(str(self.topic_id), str(self.remote_topic_id))

    @property
    def existing(self) -> tuple[str, int, UUID, str, UUID]:
        """The five fields above. ValueError if there is no remote topic."""
        if self.remote_topic_id is None:
            raise ValueError(f"{self.topic}-{self.partition} has no remote topic yet")
        return self.topic, self.partition, self.topic_id, self.remote_topic, self.remote_topic_id

    def receipt(self, kind: ReceiptKind, start: int, end: int, reason: str) -> Receipt:
        """A receipt of these partitions for `[start, end)` that copies nothing."""
        ids = self.topic_ids
        return Receipt(kind, self.topic, self.partition, ids.source, self.remote_topic, ids.remote, start, end, reason=reason)


def id_of(description: TopicDescription | None) -> str:
    """The topic's id in the form of receipts: zeros for clusters without topic ids, empty if there is no such topic."""
    return "" if description is None else str(UUID(description.topic_id or NO_ID))


def created_again(recorded: str, today: str | None) -> bool:
    """Whether the topic that had the `recorded` id (empty: not known) was deleted and created again. False if there is no topic today."""
    return today is not None and recorded not in {"", today}


def of_source(receipts: Iterable[Receipt], source_topic_id: str) -> list[Receipt]:
    """The receipts of this source topic, without those of older topics of the same name."""
    return [receipt for receipt in receipts if receipt.source_topic_id == source_topic_id]


def valid_receipts(
    receipts: Iterable[Receipt], today: Mapping[TopicPartition, TopicIds], *, any_source: bool = False
) -> dict[TopicPartition, list[Receipt]]:
    """By source partition: the receipts that name the ids of `today`. Partitions that `today` does not name have none.

    `any_source`: receipts of older source topics count too. They still explain records of the remote topic.
    """
    found: dict[TopicPartition, list[Receipt]] = {}
    for receipt in receipts:
        ids = today.get(receipt.key)
        if ids is not None and receipt.remote_topic_id == ids.remote and (any_source or receipt.source_topic_id == ids.source):
            found.setdefault(receipt.key, []).append(receipt)
    return found
