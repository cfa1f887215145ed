"""What a partition weighs when lanes are balanced."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.copying.feed_bench import task

from ferry.copying.lane_messages import PARTITION_WEIGHT

pytestmark = pytest.mark.unit


def test_offsets_that_are_not_copied_weigh_nothing() -> None:
    """What the flow in the other direction wrote is left to settle, but not to send."""
    partition = replace(task(start=10, end=100), offset_bytes=1_000.0, excluded=((0, 20), (50, 90), (100, 300)))
    assert (partition.offsets, partition.weight) == (90, PARTITION_WEIGHT + 40_000)
