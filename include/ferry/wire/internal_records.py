"""The records of MirrorMaker 2's internal topics, byte for byte: heartbeats, checkpoints, offset syncs.

Kafka's legacy Struct encoding: big-endian, STRING is an INT16 byte length and UTF-8, no tags. Heartbeat and checkpoint values begin with an
INT16 version, 0; offset syncs have none. Trailing bytes are ignored, as MM2 ignores them; a missing key or value, another version or a
short buffer is a ValueError (connect/mirror-client/.../{Heartbeat,Checkpoint}.java, connect/mirror/.../OffsetSync.java).
"""

import struct
from dataclasses import dataclass
from typing import Self

VERSION = 0

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_HEARTBEAT_VALUE = struct.Struct(">hq")
_CHECKPOINT_VALUE = struct.Struct(">hqq")
_OFFSET_SYNC_VALUE = struct.Struct(">qq")
_LONGEST_STRING = 0x7FFF


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Topic `heartbeats`: the flow source -> target was alive at `timestamp` (ms)."""

    source_cluster_alias: str
    target_cluster_alias: str
    timestamp: int

    def encode_key(self) -> bytes:
        return _string(self.source_cluster_alias) + _string(self.target_cluster_alias)

    def encode_value(self) -> bytes:
        return _HEARTBEAT_VALUE.pack(VERSION, self.timestamp)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Raises ValueError when it is no heartbeat."""
        source, at = _read_string(_present(key), 0)
        target, _ = _read_string(_present(key), at)
        (timestamp,) = _read_versioned(_HEARTBEAT_VALUE, value)
        return cls(source, target, timestamp)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Topic `<source>.checkpoints.internal`: where `group` stands, in the source's (upstream) and the target's (downstream) offsets.

    `topic` is the name on the target. `metadata` is never null: empty if there is none.
    """

    group: str
    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""

    def encode_key(self) -> bytes:
        return _string(self.group) + _string(self.topic) + _INT.pack(self.partition)

    def encode_value(self) -> bytes:
        return _CHECKPOINT_VALUE.pack(VERSION, self.upstream_offset, self.downstream_offset) + _string(self.metadata)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Raises ValueError when it is no checkpoint."""
        group, at = _read_string(_present(key), 0)
        topic, at = _read_string(_present(key), at)
        (partition,) = _read(_INT, _present(key), at)
        upstream_offset, downstream_offset = _read_versioned(_CHECKPOINT_VALUE, value)
        metadata, _ = _read_string(_present(value), _CHECKPOINT_VALUE.size)
        return cls(group, topic, partition, upstream_offset, downstream_offset, metadata)


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """Topic `mm2-offset-syncs.<other>.internal`: one pair of offsets of the same record. `topic` is the name on the source."""

    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int

    def encode_key(self) -> bytes:
        return _string(self.topic) + _INT.pack(self.partition)

    def encode_value(self) -> bytes:
        return _OFFSET_SYNC_VALUE.pack(self.upstream_offset, self.downstream_offset)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Raises ValueError when it is no offset sync."""
        topic, at = _read_string(_present(key), 0)
        (partition,) = _read(_INT, _present(key), at)
        upstream_offset, downstream_offset = _read(_OFFSET_SYNC_VALUE, _present(value), 0)
        return cls(topic, partition, upstream_offset, downstream_offset)


def _string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > _LONGEST_STRING:
        raise ValueError(f"a string of {len(encoded)} bytes; the format holds {_LONGEST_STRING}")
    return _SHORT.pack(len(encoded)) + encoded


def _present(data: bytes | None) -> bytes:
    if data is None:
        raise ValueError("a null key or value: these topics hold no tombstones")
    return data


def _read(layout: struct.Struct, data: bytes, at: int) -> tuple[int, ...]:
    if len(data) - at < layout.size:
        raise ValueError(f"{layout.size} bytes are needed at byte {at}, {max(0, len(data) - at)} are left")
    return layout.unpack_from(data, at)


def _read_versioned(layout: struct.Struct, value: bytes | None) -> tuple[int, ...]:
    version, *fields = _read(layout, _present(value), 0)
    if version != VERSION:
        raise ValueError(f"a value of version {version}; only version {VERSION} is known")
    return tuple(fields)


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _read(_SHORT, data, at)
    start = at + _SHORT.size
    if not 0 <= length <= len(data) - start:
        raise ValueError(f"a string of {length} bytes with {len(data) - start} left")
    return data[start : start + length].decode(), start + length
