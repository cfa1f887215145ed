"""The line that a run says how far it is by."""

from __future__ import annotations

import pytest

from ferry.copying.progress import Progress
from ferry.copying.receipts import Receipt, ReceiptKind

pytestmark = pytest.mark.unit


def receipt(start: int, end: int, records: int, size: int) -> Receipt:
    return Receipt(ReceiptKind.COPIED, "t", 0, "id", "A.t", "id", start, end, records=records, bytes=size)


def test_a_line_tells_what_was_copied_and_how_long_the_rest_takes() -> None:
    progress = Progress(offsets_total=4_000, lanes_total=3)
    assert progress.line(0.0) == "0 records, 0.0 MB, 0.0 MB/s, 0 of 3 lanes done, 0% of the offsets"
    progress.add(receipt(5, 505, 400, 1_000_000_000))
    progress.add(receipt(0, 500, 800, 234_500_000))
    progress.lanes_done += 1
    assert (progress.offsets, progress.records, progress.bytes) == (1_000, 1_200, 1_234_500_000)
    assert progress.line(20.0) == "1,200 records, 1,234.5 MB, 61.7 MB/s, 1 of 3 lanes done, 25% of the offsets, about 60 s left"
    assert ", 1,234,500.0 MB/s, " in progress.line(0.0), "not even a millisecond"


def test_at_the_end_nothing_is_left() -> None:
    progress = Progress(offsets_total=1_000, lanes_total=1, offsets=1_500)
    assert progress.line(1.0).endswith("0 of 1 lanes done, 100% of the offsets")
    assert Progress(offsets_total=0, lanes_total=0).line(1.0).endswith("100% of the offsets")
    assert Progress(offsets_total=1, lanes_total=1).line(1.0).endswith(" 0% of the offsets")
