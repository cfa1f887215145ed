"""How many bytes a partition has left to send, by what is known of it or of others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.weights import FEW_OFFSETS, UNKNOWN_BYTES, bytes_an_offset, without_size

pytestmark = pytest.mark.unit


def plan(topic: str, number: int = 0, *, told: int | None = None, start: int = 0, end: int = 100, offsets: int = FEW_OFFSETS) -> Any:
    head = None if told is None else SimpleNamespace(record_bytes=told)
    return SimpleNamespace(
        facts=SimpleNamespace(key=TopicPartition(topic, number), head=head, log_start=start, stable_end=end), offsets=offsets
    )


def test_what_was_copied_last_tells_before_the_log() -> None:
    plans = [plan("a", told=70), plan("b", start=50), plan("c", told=0)]
    sizes = {TopicPartition(topic, 0): 10_000 for topic in "abc"}
    assert list(bytes_an_offset(plans, sizes).values()) == [70, 200, 100]


def test_what_nobody_tells_is_like_the_others() -> None:
    plans = [plan("a", 0, told=10), plan("a", 1, told=30), plan("a", 2), plan("b"), plan("c", told=110), plan("d", start=100)]
    assert list(bytes_an_offset(plans, {TopicPartition("d", 0): 10_000}).values()) == [10, 30, 20, 50, 110, 50]
    assert list(bytes_an_offset([plan("a"), plan("b")], {}).values()) == [UNKNOWN_BYTES] * 2
    assert bytes_an_offset([], {}) == {}


def test_the_source_is_asked_only_where_it_matters() -> None:
    plans = [plan("a", told=10), plan("b", offsets=1), plan("c", offsets=FEW_OFFSETS - 2)]
    assert without_size(plans) == []
    plans.append(plan("d", told=0, offsets=1))
    assert without_size(plans) == [TopicPartition(topic, 0) for topic in "bcd"], "one request, whatever it names"
