"""Every record says who it is: producer, sequence, partition that it was sent to, and a checksum of all its content. Pure.

The stamp stands at the beginning of the value, or in a header of its own where there is no value or by the producer's choice, so records
with and without headers, and without values, are all known again.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from tests.drills.histories.model import Place, RecordId, Seen

HEADER = "stamp"
END = b"|"

Headers = Sequence[tuple[str, bytes | None]]


class Content(NamedTuple):
    """What a producer sends; `timestamp` in ms."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


def stamped(record: RecordId, place: Place, content: Content, *, in_header: bool) -> Content:
    """The content with its stamp."""
    stamp = f"{record[0]} {record[1]} {place[0]} {place[1]} {_checksum(content)}".encode()
    if in_header or content.value is None:
        return content._replace(headers=(*content.headers, (HEADER, stamp)))
    return content._replace(value=stamp + END + content.value)


def read_stamp(offset: int, content: Content) -> Seen:
    """What a reader got at an offset of the target."""
    stamp, inner = _parted(content)
    try:
        producer, sequence, topic, partition, checksum = stamp.decode().split(" ")
        return Seen(offset, (int(producer), int(sequence)), (topic, int(partition)), int(checksum) == _checksum(inner))
    except ValueError:
        return Seen(offset, None, None)


def _parted(content: Content) -> tuple[bytes, Content]:
    if content.headers and content.headers[-1][0] == HEADER:
        return content.headers[-1][1] or b"", content._replace(headers=content.headers[:-1])
    stamp, _, value = (content.value or b"").partition(END)
    return stamp, content._replace(value=value)


def _checksum(content: Content) -> int:
    return zlib.crc32(repr(tuple(content)).encode())
