"""Forwarding: a whole batch sent on with a new header and the same payload.

Only fields that belong to the source's log or producer change; the records, compressed or not, are copied as one block. The broker checks
base offset 0 and the CRC (storage/.../log/LogValidator.java), and keeps such a batch as it is when its topic has
`compression.type=producer`.
"""

from __future__ import annotations

import struct

import crc32c

from ferry.wire.batch import CODEC_MASK, CRC_FROM, TRANSACTIONAL

# Base offset at 0; leader epoch at 12; CRC at 17; attributes at 21; producer id, epoch and base sequence at 43.
_BASE_OFFSET = bytes(8)
_NO_LEADER_EPOCH = b"\xff\xff\xff\xff"
_CRC = struct.Struct(">I")
_PRODUCER = struct.Struct(">qhi")


def forward(view: memoryview, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> bytearray:
    """A copy of the whole magic-2 batch `view`, ready to be produced by (producer_id, epoch) from `base_sequence` on.

    Of the attributes only the codec survives: the timestamp type becomes CreateTime, control, delete-horizon and reserved bits go away
    (a kept delete horizon would be stored and read as a deletion time). The caller has checked the source's CRC, since this writes a new
    one, and that the batch is contiguous.
    """
    batch = bytearray(view)
    batch[0:8] = _BASE_OFFSET
    batch[12:16] = _NO_LEADER_EPOCH
    batch[21] = 0
    batch[22] = (batch[22] & CODEC_MASK) | (TRANSACTIONAL if transactional else 0)
    _PRODUCER.pack_into(batch, 43, producer_id, epoch, base_sequence)
    _CRC.pack_into(batch, 17, crc32c.crc32c(memoryview(batch)[CRC_FROM:]))
    return batch
