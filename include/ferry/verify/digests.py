"""The digest of a range in the report: SHA-256 over committed records in their order, without offsets (pure).

`stored`, the usual kind, is over the source's batches as they are stored, so it needs no decompression. A batch that is in the range as a
whole counts as `B`, then attributes (codec, kind of timestamp, delete horizon; 2 bytes), last offset delta (4), base timestamp and max
timestamp (8 each), number of records (4), length (4) and the bytes behind the header: a forward changes none of these. In every other batch
(it overlaps the range's edge, or has an older format) each record in the range counts as below.

`records` does not depend on batches and codecs, and is taken of both sides. Each record counts as `R`, timestamp (8 bytes), length (4), and
key, value and headers as in a batch of magic 2. Numbers are big-endian and signed. The hashed bytes depend only on the range and the log,
not on the sizes of responses. docs/decisions/010-digests.md says why there are two kinds.
"""

import hashlib
import struct
from itertools import chain

from ferry.verify.contents import RecordColumns
from ferry.wire.batch import CODEC_MASK, DELETE_HORIZON, HEADER_SIZE, LOG_APPEND_TIME, BatchHeader

_BATCH = struct.Struct(">chiqqii")
_RECORD = struct.Struct(">cqi")
_ATTRIBUTES = CODEC_MASK | LOG_APPEND_TIME | DELETE_HORIZON


class RangeDigest:
    """The digest of one side of one range. Batches and records are added in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add_batch(self, header: BatchHeader, view: memoryview) -> None:
        """A whole batch of magic 2, as it is stored."""
        body = view[HEADER_SIZE:]
        attributes, times = header.attributes & _ATTRIBUTES, (header.base_timestamp, header.max_timestamp)
        self._hash.update(_BATCH.pack(b"B", attributes, header.last_offset_delta, *times, header.count, len(body)))
        self._hash.update(body)

    def add_records(self, found: RecordColumns) -> None:
        pack = _RECORD.pack
        heads = [pack(b"R", timestamp, len(payload)) for timestamp, payload in zip(found.timestamps, found.payloads, strict=True)]
        self._hash.update(b"".join(chain.from_iterable(zip(heads, found.payloads, strict=True))))

    def text(self) -> str:
        return self._hash.hexdigest()
