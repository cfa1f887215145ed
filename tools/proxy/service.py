"""What a managed service takes and refuses: a description, by which a proxy plays the service before a real broker.

The default takes everything that the broker takes. Limits that a broker has itself (quotas, largest batch, longest transaction, number of
partitions) are no part of it: set them on the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.proxy.rules import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    ALTER_CONFIGS,
    CREATE_TOPICS,
    DESCRIBE_CONFIGS,
    END_TXN,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)

from ferry.clusters.net.error_codes import CODES

# In place of a newest version: the service does not have this request.
NOT_OFFERED = -1
# Newest versions without topic ids (KIP-516 and KIP-1101): Produce, Fetch, Metadata, OffsetCommit, OffsetFetch, CreateTopics, DeleteTopics.
WITHOUT_TOPIC_IDS = {0: 12, 1: 12, 3: 9, 8: 9, 9: 9, 19: 6, 20: 5}
TRANSACTIONAL = frozenset({INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT, PRODUCE})
NO_ERROR = 0
# Of ConfigResource.Type.
BROKER = 4
# The attributes of a record batch and their bits for the codec (DefaultRecordBatch.java).
ATTRIBUTES_AT, CODEC_BITS = 22, 0x07
LENGTH_AT, BEFORE_LENGTH = 8, 12


@dataclass(frozen=True)
class Service:
    """Each error is the number of an error code; NO_ERROR: the service takes it.

    newest: the newest version of a request by API key, or NOT_OFFERED. The others are as the broker's.
    errors: requests that are refused whole, by API key.
    transactions: for requests of transactional ids; producers without one go on.
    codecs: of record batches, by their number in the attributes. None: all.
    topic_configs: names that topics may be given; a topic with another name is refused with `config_error`. None: all.
    factors: replication factors of CreateTopics. The broker gets -1 in their place, as it may have fewer brokers. None: as asked.
    broker_configs: names that DescribeConfigs tells of brokers. None: all. broker_error: it tells nothing of them.
    request_bytes: of the largest request; after a larger one the service closes the connection. 0: no limit.
    cluster_id: empty for the broker's own; None: it tells none. features: whether ApiVersions tells finalized features.
    asked, answered: by API key, what changes a request before the broker gets it, or the broker's answer; messages of kafka-python.
    """

    newest: Mapping[int, int] = field(default_factory=dict, hash=False)
    errors: Mapping[int, int] = field(default_factory=dict, hash=False)
    transactions: int = NO_ERROR
    codecs: frozenset[int] | None = None
    topic_configs: frozenset[str] | None = None
    config_error: int = CODES["INVALID_CONFIG"]
    factors: frozenset[int] | None = None
    broker_configs: frozenset[str] | None = None
    broker_error: int = NO_ERROR
    request_bytes: int = 0
    cluster_id: str | None = ""
    features: bool = True
    asked: Mapping[int, Callable[[Any], None]] = field(default_factory=dict, hash=False)
    answered: Mapping[int, Callable[[Any], None]] = field(default_factory=dict, hash=False)

    def offers(self, api: int, version: int) -> bool:
        """Whether it knows this version of a request; otherwise it closes the connection, as Kafka does."""
        return version <= self.newest.get(api, version)

    def reads(self, size: int) -> bool:
        """Whether it reads a request of so many bytes."""
        return not self.request_bytes or size <= self.request_bytes

    def refuses(self, api: int, request: Any) -> int:
        """The error with which it refuses the whole request. `request`: a message of kafka-python."""
        if api in self.errors:
            return self.errors[api]
        # AddPartitionsToTxn is for transactional ids alone, and holds them in two places.
        if self.transactions and (api == ADD_PARTITIONS_TO_TXN or (api in TRANSACTIONAL and request.transactional_id is not None)):
            return self.transactions
        if api == PRODUCE and self.codecs is not None and not self.codecs.issuperset(_codecs(request)):
            return CODES["UNSUPPORTED_COMPRESSION_TYPE"]
        return NO_ERROR

    def refuses_entry(self, api: int, entry: Any) -> tuple[int, str]:
        """The error with which it refuses one topic or one resource of a request, and a message."""
        if api in self.errors:
            return self.errors[api], "the service does not take this request"
        if api == DESCRIBE_CONFIGS:
            return (self.broker_error, "configs of brokers are not shown") if entry.resource_type == BROKER else (NO_ERROR, "")
        if api == CREATE_TOPICS and self.factors is not None and entry.replication_factor not in self.factors:
            allowed = ", ".join(map(str, sorted(self.factors)))
            return CODES["INVALID_REPLICATION_FACTOR"], f"replication factor {entry.replication_factor}: only {allowed}"
        if api in {CREATE_TOPICS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS} and self.topic_configs is not None:
            refused = sorted({config.name for config in entry.configs} - self.topic_configs)
            return (self.config_error, f"cannot be set: {', '.join(refused)}") if refused else (NO_ERROR, "")
        return NO_ERROR, ""


def _codecs(produce: Any) -> Iterable[int]:
    """Of every batch of a Produce request."""
    for topic in produce.topic_data:
        for partition in topic.partition_data:
            records, at = bytes(partition.records or b""), 0
            while at < len(records):
                yield records[at + ATTRIBUTES_AT] & CODEC_BITS
                at += BEFORE_LENGTH + int.from_bytes(records[at + LENGTH_AT : at + BEFORE_LENGTH])
