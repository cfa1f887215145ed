"""A batch of any magic and codec as magic 2 and not compressed, for those treatments that look into it."""

from __future__ import annotations

from ferry.wire import compression, legacy
from ferry.wire.batch import HEADER_SIZE, BatchHeader
from ferry.wire.compression import LARGEST_BYTES
from ferry.wire.varint import Buffer


def opened(header: BatchHeader, view: memoryview, limit: int = LARGEST_BYTES) -> tuple[BatchHeader, Buffer]:
    """A magic-2 header of one whole entry, with its codec, and its records, not compressed. Raises MalformedBatch.

    OversizedBatch, before the memory is taken, where the records have more than `limit` bytes.
    """
    if header.magic < 2:
        return legacy.convert(header, view, limit)
    return header, compression.decompress(header.codec, view[HEADER_SIZE:], limit)
