"""Prepared record batches, and the Produce requests that carry them.

Every batch has exactly as many records as its shape says. A request carries one batch for each of some partitions (brokers demand one
per partition), is encoded once and sent many times: appending costs the client next to nothing, so what it reaches is the broker's limit.
"""

from __future__ import annotations

import random
import struct
import time

from crc32c import crc32c
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks.connection import encode
from benchmarks.shapes import Shape
from ferry.wire.compression import CODEC_NAMES, compress

# Different batches, so that a codec or a page cache sees no single batch over and over.
VARIETY = 8
# A request for many partitions stays far below the broker's socket.request.max.bytes (100 MiB).
PARTITIONS_PER_REQUEST = 100
# Version 9 is flexible and carries topic names; version 13 would need topic ids.
PRODUCE_VERSION = 9
REQUEST_TIMEOUT_MS = 30_000
SEED = 20

# Layout of a magic-2 batch (Kafka's DefaultRecordBatch): where the length, the checksum, what it covers, and the records begin.
_LENGTH_AT, _LENGTH_COUNTS_FROM = 8, 12
_CHECKSUM_AT, _CHECKSUM_COVERS_FROM = 17, 21
_RECORDS_AT = 61


def record_values(shape: Shape, generator: random.Random) -> list[bytes]:
    """Values of one batch: fields with random numbers, so that codecs compress about as much as they do on JSON events."""
    return [_value(shape.record_bytes, generator) for _ in range(shape.records_per_batch)]


def build_batch(values: list[bytes], codec: str, timestamp_ms: int) -> bytes:
    """One magic-2 batch without a producer id; the broker assigns the offsets."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for offset, value in enumerate(values):
        builder.append(offset, timestamp_ms, None, value, [])
    plain = bytes(builder.build())
    return plain if codec == "none" else _compressed(plain, codec)


def _compressed(plain: bytes, codec: str) -> bytes:
    """The batch with its records compressed; kafka-python's builder has no codec libraries here."""
    number = CODEC_NAMES.index(codec)
    batch = bytearray(plain[:_RECORDS_AT]) + bytes(compress(number, plain[_RECORDS_AT:]))
    struct.pack_into(">i", batch, _LENGTH_AT, len(batch) - _LENGTH_COUNTS_FROM)
    struct.pack_into(">h", batch, _CHECKSUM_COVERS_FROM, number)
    struct.pack_into(">I", batch, _CHECKSUM_AT, crc32c(bytes(batch[_CHECKSUM_COVERS_FROM:])))
    return bytes(batch)


def prepared_batches(shape: Shape) -> list[bytes]:
    """VARIETY different batches of the shape, stamped with now."""
    generator = random.Random(SEED)  # noqa: S311 - test data
    now = time.time_ns() // 1_000_000
    return [build_batch(record_values(shape, generator), shape.codec, now) for _ in range(VARIETY)]


def encoded_requests(topics: list[str], partitions: int, batch: bytes) -> list[bytes]:
    """Requests, framed and ready to send, that append `batch` once to every partition of every topic."""
    everything = [(topic, partition) for topic in topics for partition in range(partitions)]
    chunks = [everything[at : at + PARTITIONS_PER_REQUEST] for at in range(0, len(everything), PARTITIONS_PER_REQUEST)]
    return [_encode(chunk, batch) for chunk in chunks]


def _encode(chunk: list[tuple[str, int]], batch: bytes) -> bytes:
    by_topic: dict[str, list[ProduceRequest.TopicProduceData.PartitionProduceData]] = {}
    for topic, partition in chunk:
        entry = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=batch)
        by_topic.setdefault(topic, []).append(entry)
    request = ProduceRequest(
        version=PRODUCE_VERSION,
        transactional_id=None,
        acks=-1,
        timeout_ms=REQUEST_TIMEOUT_MS,
        topic_data=[ProduceRequest.TopicProduceData(name=name, partition_data=parts) for name, parts in by_topic.items()],
    )
    return encode(request)


def _value(size: int, generator: random.Random) -> bytes:
    text = ""
    while len(text) < size:
        identity = generator.randbytes(24).hex()
        text += f'{{"id":"{identity}","event":"transfer","amount":{generator.randrange(10**6)},"currency":"EUR"}}'
    return text[:size].encode()
