"""Forwarding: a whole batch sent on with a new header and the same payload.

Only fields that belong to the source's log or producer change; the records, compressed or not, are not even copied. The broker checks
base offset 0 and the CRC (storage/.../log/LogValidator.java), and keeps such a batch as it is when its topic has
`compression.type=producer`.
"""

from __future__ import annotations

import struct

import crc32c

from ferry.wire.batch import CODEC_MASK, LENGTH_OVERHEAD, TRANSACTIONAL

# Base offset 0, length; leader epoch -1, magic 2; CRC.
_HEAD = struct.Struct(">qiibI")
# What follows the attributes and is kept: last offset delta and both timestamps. Then producer id, epoch and base sequence.
_KEPT = slice(23, 43)
_PRODUCER = struct.Struct(">qhi")
_RECORDS_FROM = 57


def forward(view: memoryview, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> tuple[bytes, memoryview]:
    """The whole magic-2 batch `view`, ready to be produced by (producer_id, epoch) from `base_sequence` on: its new head, and its rest.

    Of the attributes only the codec survives: the timestamp type becomes CreateTime, control, delete-horizon and reserved bits go away
    (a kept delete horizon would be stored and read as a deletion time). The caller has checked the source's CRC, since this writes a new
    one, and that the batch is contiguous.
    """
    attributes = (view[22] & CODEC_MASK) | (TRANSACTIONAL if transactional else 0)
    covered = attributes.to_bytes(2, "big") + view[_KEPT] + _PRODUCER.pack(producer_id, epoch, base_sequence)
    rest = view[_RECORDS_FROM:]
    checksum = crc32c.crc32c(rest, crc32c.crc32c(covered))
    return _HEAD.pack(0, len(view) - LENGTH_OVERHEAD, -1, 2, checksum) + covered, rest
