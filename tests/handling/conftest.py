"""A batch written by kafka-python."""

from __future__ import annotations

import struct
import warnings

import pytest

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated call when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatchBuilder


@pytest.fixture
def kafka_batch() -> bytes:
    """One record at offset 0."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    builder.append(0, 5, b"private", b"private", [("private", b"private")])
    batch = bytearray(builder.build())
    struct.pack_into(">i", batch, 12, 7)
    return bytes(batch)
