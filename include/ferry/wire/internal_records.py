"""The records of MirrorMaker 2's internal topics, byte for byte: heartbeats, checkpoints, offset syncs.

Kafka's legacy Struct encoding: big-endian, STRING is an INT16 byte length and UTF-8, no tags. Heartbeat and checkpoint values begin with an
INT16 version, 0; offset syncs have none. Trailing bytes are ignored, as MM2 ignores them; a missing key or value, another version or a
short buffer is a ValueError (connect/mirror-client/.../{Heartbeat,Checkpoint}.java, connect/mirror/.../OffsetSync.java).
"""

import struct
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from typing import Any, ClassVar, Self

VERSION = 0
_LONGEST_STRING = 0x7FFF


@dataclass(frozen=True, slots=True)
class _Record:
    """A record whose fields are those of its key, then those of its value. KEY, VALUE: their types, S for STRING, others as in `struct`."""

    KEY: ClassVar[str]
    VALUE: ClassVar[str]
    VERSIONED: ClassVar[bool] = True

    def encode_key(self) -> bytes:
        return _encoded(self.KEY, astuple(self)[: len(self.KEY)])

    def encode_value(self) -> bytes:
        version = struct.pack(">h", VERSION) if self.VERSIONED else b""
        return version + _encoded(self.VALUE, astuple(self)[len(self.KEY) :])

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Raises ValueError when it is no such record."""
        if key is None or value is None:
            raise ValueError("a null key or value: these topics hold no tombstones")
        (version, *_), at = _decoded("h", value, 0) if cls.VERSIONED else ([VERSION], 0)
        if version != VERSION:
            raise ValueError(f"a value of version {version}; only version {VERSION} is known")
        make: Callable[..., Self] = cls
        return make(*_decoded(cls.KEY, key, 0)[0], *_decoded(cls.VALUE, value, at)[0])


@dataclass(frozen=True, slots=True)
class Heartbeat(_Record):
    """Topic `heartbeats`: the flow source -> target was alive at `timestamp` (ms)."""

    KEY, VALUE = "SS", "q"

    source_cluster_alias: str
    target_cluster_alias: str
    timestamp: int


@dataclass(frozen=True, slots=True)
class Checkpoint(_Record):
    """Topic `<source>.checkpoints.internal`: where `group` stands, in the source's (upstream) and the target's (downstream) offsets.

    `topic` is the name on the target. `metadata` is never null: empty if there is none.
    """

    KEY, VALUE = "SSi", "qqS"

    group: str
    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class OffsetSync(_Record):
    """Topic `mm2-offset-syncs.<other>.internal`: one pair of offsets of the same record. `topic` is the name on the source."""

    KEY, VALUE, VERSIONED = "Si", "qq", False

    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int


def _encoded(types: str, values: Iterable[Any]) -> bytes:
    parts = [_string(value) if kind == "S" else struct.pack(f">{kind}", value) for kind, value in zip(types, values, strict=True)]
    return b"".join(parts)


def _string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > _LONGEST_STRING:
        raise ValueError(f"a string of {len(encoded)} bytes; the format holds {_LONGEST_STRING}")
    return struct.pack(">h", len(encoded)) + encoded


def _decoded(types: str, data: bytes, at: int) -> tuple[list[Any], int]:
    """The values from index `at` on, and the index after them."""
    found: list[Any] = []
    for kind in types:
        layout = struct.Struct(">h" if kind == "S" else f">{kind}")
        if len(data) - at < layout.size:
            raise ValueError(f"{layout.size} bytes are needed at byte {at}, {max(0, len(data) - at)} are left")
        value: Any = layout.unpack_from(data, at)[0]
        at += layout.size
        if kind == "S":
            if not 0 <= value <= len(data) - at:
                raise ValueError(f"a string of {value} bytes with {len(data) - at} left")
            value, at = data[at : at + value].decode(), at + value
        found.append(value)
    return found, at
