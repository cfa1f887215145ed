"""How many records a read_committed reader finds in a topic, without decoding one.

The batch headers say it: `records_count` of every batch that is no control batch. That holds as long as no transaction was aborted; the
broker names aborted ones with each answer, and then a real consumer counts.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kafka.protocol.consumer import FetchRequest, FetchResponse

from benchmarks.connection import Connection, encode
from benchmarks.topics import READ_COMMITTED, Partition

# The last version that speaks of topics by name.
FETCH_VERSION = 12
FETCH_BYTES = 16 * 1024 * 1024
WAIT_MS = 500
_READ_AT_ONCE = 50_000
_HEADER = struct.Struct(">qiibIhi")  # base offset, length, leader epoch, magic, checksum, attributes, last offset delta
_COUNT_AT = 57
_RECORDS_AT = 61
_LENGTH_COUNTS_FROM = 12
_CONTROL = 0x20


class _Aborted(Exception):
    """Headers do not tell: some of the batches are not to be read."""


def count_records(bootstrap: str, ends: dict[Partition, int]) -> int:
    """Committed records of each partition from its beginning to its end (exclusive), all of them on one broker."""
    try:
        with Connection(bootstrap) as connection:
            return sum(_count_partition(connection, partition, end) for partition, end in ends.items() if end)
    except _Aborted:
        return _consume(bootstrap, ends)


def count_batches(data: bytes | memoryview, offset: int) -> tuple[int, int]:
    """(records, next offset) of the whole batches in `data`; batches before `offset` do not count. A cut batch at the end is left out."""
    view = memoryview(data)
    records = at = 0
    while len(view) - at >= _RECORDS_AT:
        base, length, _, _, _, attributes, last_delta = _HEADER.unpack_from(view, at)
        if len(view) - at < _LENGTH_COUNTS_FROM + length:
            break
        if base >= offset:
            if not attributes & _CONTROL:
                records += struct.unpack_from(">i", view, at + _COUNT_AT)[0]
            offset = base + last_delta + 1
        at += _LENGTH_COUNTS_FROM + length
    return records, offset


def _count_partition(connection: Connection, partition: Partition, end: int) -> int:
    records = offset = 0
    while offset < end:
        answer = connection.ask(encode(_fetch(partition, offset)), FetchResponse, FETCH_VERSION)
        part = answer.responses[0].partitions[0]
        if part.error_code:
            raise KafkaException(KafkaError(part.error_code))
        if part.aborted_transactions:
            raise _Aborted
        more, following = count_batches(part.records or b"", offset)
        if following == offset:
            raise RuntimeError(f"{partition} ends at {end}, but nothing can be read at {offset}")
        records, offset = records + more, following
    return records


def _fetch(partition: Partition, offset: int) -> Any:
    topic = FetchRequest.FetchTopic
    entry = topic.FetchPartition(
        partition=partition[1],
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=FETCH_BYTES,
    )
    return FetchRequest(
        version=FETCH_VERSION,
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        isolation_level=READ_COMMITTED,
        session_id=0,
        session_epoch=-1,
        topics=[topic(topic=partition[0], partitions=[entry])],
        forgotten_topics_data=[],
        rack_id="",
    )


def _consume(bootstrap: str, ends: Iterable[Partition]) -> int:
    wanted = [TopicPartition(topic, number, 0) for topic, number in ends]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"benchmark-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        consumer.assign(wanted)
        records, ended = 0, 0
        while ended < len(wanted):
            messages = consumer.consume(_READ_AT_ONCE, timeout=0.2)
            errors = [error for message in messages if (error := message.error()) is not None]
            if any(error.code() != KafkaError._PARTITION_EOF for error in errors):  # noqa: SLF001 - that is its public name
                raise KafkaException(errors[0])
            records += len(messages) - len(errors)
            ended += len(errors)
        return records
    finally:
        consumer.close()
