"""What the page says of a missing range whose times the source does not tell."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.partitions import TopicPartition
from ferry.page import missing_reading
from ferry.page.coverage_timeline import MissingRange

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("obstacle", "told"), [("", "its times were not found: no answer from A"), ("compacted", "compacted")])
def test_why_a_range_has_no_times(obstacle: str, told: str) -> None:
    key = TopicPartition("t", 2)
    source: Any = SimpleNamespace(offsets_for_time=lambda *_: ({}, {key: "no answer from A"}))
    assert missing_reading._timed(source, key, (3, 1_000), 8, obstacle, math.inf) == MissingRange(2, 3, 8, obstacle=told)
