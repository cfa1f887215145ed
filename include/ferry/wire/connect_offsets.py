"""Kafka Connect's source offsets, as MirrorMaker 2's source connector writes them: JSON without schemas and blanks.

    key   ["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"orders"}]
    value {"offset":124999}                                   the last offset that was copied

Compaction, the producer's default partitioner and Connect's look-up of offsets all compare the bytes of the key. Java's HashMap decides the
order of the names in it. Other tools may write another order: here equal names and values mean the same source partition.
No value means that the offset was removed. (MirrorUtils.wrapPartition, OffsetStorageWriter, KafkaOffsetBackingStore.)
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ferry.wire.strict_json import number, read_document, text

SOURCE_CONNECTOR = "MirrorSourceConnector"


# A record of an offsets topic, as InternalRecord: partition, offset, time in ms, key, value, leader epoch.
OffsetRecord = tuple[int, int, int, bytes, bytes | None, int]


class SourcePartition(NamedTuple):
    """Whose offset it is: connector name, source alias, and the source's partition."""

    connector: str
    cluster: str
    topic: str
    partition: int


def decode_source_key(key: bytes) -> SourcePartition | None:
    """The source partition that a key means; None for keys of other connectors."""
    try:
        connector, where = read_document(key)
        found = SourcePartition(text(connector), text(where["cluster"]), text(where["topic"]), number(where["partition"]))
    except (ValueError, KeyError, TypeError):
        return None
    return found if found.partition >= 0 and len(where) == 3 else None


def decode_source_offset(value: bytes | None) -> int | None:
    """The last offset copied; None if it was removed, or if it is negative, which MM2 ignores. ValueError for anything else."""
    try:
        offset = None if value is None else read_document(value)["offset"]
        return None if offset is None or number(offset) < 0 else number(offset)
    except (KeyError, TypeError) as problem:
        raise ValueError(f"it has no offset: {problem}") from problem


def encode_source_key(where: SourcePartition) -> bytes:
    """The key as Connect writes it, byte for byte."""
    return _compact([where.connector, {"cluster": where.cluster, "partition": where.partition, "topic": where.topic}])


def encode_source_offset(offset: int) -> bytes:
    """The value as Connect writes it."""
    return _compact({"offset": offset})


def latest_source_offsets(records: Iterable[OffsetRecord], topic: str) -> dict[SourcePartition, int | None]:
    """The last offset copied of every source partition, None where it was removed.

    `records` are in log order within each partition. Keys of one source partition with another order of names may lie in several
    partitions: then the later timestamp counts, and of equal ones the smaller offset. ValueError names a value that is no offset.
    """
    last: dict[tuple[SourcePartition, int], tuple[int, int | None]] = {}
    for partition, at, timestamp, key, value, _ in records:
        where = decode_source_key(key)
        if where is None:
            continue
        try:
            last[where, partition] = (timestamp, decode_source_offset(value))
        except ValueError as problem:
            told = f"{topic}-{partition} offset {at}: {value!r} is not an offset of {where.topic}-{where.partition}: {problem}"
            raise ValueError(told) from problem
    found: dict[SourcePartition, tuple[int, int | None]] = {}
    for (where, _), (timestamp, offset) in last.items():
        entries = found.get(where, (timestamp, offset)), (timestamp, offset)
        found[where] = max(entries, key=lambda entry: (entry[0], 1 if entry[1] is None else -entry[1]))
    return {where: offset for where, (_, offset) in found.items()}


def _compact(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
