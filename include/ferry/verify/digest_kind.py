"""What the digests of a verify are over; ferry.verify.digests defines them."""

from __future__ import annotations

from enum import StrEnum


class DigestKind(StrEnum):
    """`stored`: batches as they lie in the source's log. `records`: single records, of both sides."""

    STORED = "stored"
    RECORDS = "records"
