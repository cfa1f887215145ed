"""Segments of a simulated log: when a new one begins, what is read and searched, retention, and what compaction does to them."""

from __future__ import annotations

import pytest
from tests.simulation.asker import Asker
from tests.simulation.asks import Fetch, Init, ListOffsets, Produce
from tests.simulation.batches import records
from tests.simulation.log import Log
from tests.simulation.segments import NO_BOUND, SegmentLimits, Segments

pytestmark = pytest.mark.unit
HOUR = 3_600_000


def _asker(**config: str) -> Asker:
    """A topic of two replicas whose segments last an hour."""
    ask = Asker(brokers=(1, 2))
    config = {"segment_ms": str(HOUR), "retention_ms": "-1", **config}
    ask.memory.topic_ids["t"] = ask.cluster.create_topic("t", replicas=2, **config).topic_id
    ask.node = ask.cluster.topic("t").partitions[0].led.leader
    return ask


def _write(ask: Asker, *hours: int, key: bytes = b"k") -> None:
    for age in hours:
        ask(Produce("t", values=(b"%d" % age,), keys=(key,), ages=(age * HOUR,)))


def _logs(ask: Asker) -> list[Log]:
    return list(ask.cluster.topic("t").partitions[0].logs.values())


def test_a_segment_ends_by_time_and_by_size() -> None:
    ask = _asker()
    _write(ask, 9, 8, 6, 3)
    assert [log.segments.bases for log in _logs(ask)] == [[0, 2, 3]] * 2
    size = len(_logs(ask)[0].batches[0].data)
    small = _asker(segment_bytes=str(2 * size), segment_ms=str(NO_BOUND))
    _write(small, 9, 9, 9, 9, 9)
    assert _logs(small)[0].segments.bases == [0, 2, 4]


def test_a_fetch_reads_from_one_segment() -> None:
    ask = _asker()
    _write(ask, 9, 8, 6)
    log = _logs(ask)[0]
    assert len(log.read(0, log.end, 1 << 20, whole=True)) == len(log.batches[0].data + log.batches[1].data)
    assert log.read(2, log.end, 1 << 20, whole=True) == log.batches[2].data


def test_retention_by_time_deletes_whole_segments_of_all_replicas() -> None:
    ask = _asker(retention_ms=str(7 * HOUR + 1))
    _write(ask, 9, 8, 7, 9, 4, 0)
    assert _logs(ask)[0].segments.bases == [0, 2, 4, 5]
    ask.cluster.retain("t")
    assert [log.start for log in _logs(ask)] == [2, 2]
    ask.cluster.advance(ask.cluster.now + 9 * HOUR)
    ask.cluster.retain("t")
    assert [(log.start, log.end) for log in _logs(ask)] == [(6, 6), (6, 6)]
    assert ask.cluster.topic("t").partitions[0].log.batches == []
    _write(ask, 0)
    assert ask(ListOffsets("t")).topics[0].partitions[0].offset == 7


def test_retention_by_size_keeps_at_least_so_much() -> None:
    ask = _asker()
    _write(ask, 9, 7, 5, 3, 1)
    log = ask.cluster.topic("t").partitions[0].log
    one = len(log.batches[0].data)
    for size, start in ((4 * one + 1, 0), (4 * one, 1), (2 * one + 1, 2)):
        log.retain(0, size)
        assert log.start == start


def test_retention_stops_before_the_high_watermark() -> None:
    ask = _asker(retention_ms="1")
    partition = ask.cluster.topic("t").partitions[0]
    _write(ask, 9)
    partition.waiting.add(next(node for node in partition.replicas if node != ask.node))
    ask.begin(Produce("t", ages=(5 * HOUR,)))
    ask.cluster.retain("t")
    assert (partition.log.start, partition.log.end) == (1, 2)


def test_records_before_the_start_go_with_their_segment() -> None:
    ask = _asker()
    _write(ask, 9, 8, 6)
    log = ask.cluster.topic("t").partitions[0].log
    log.delete_before(1)
    ask.cluster.retain("t")
    assert len(log.batches) == 3
    log.delete_before(2)
    ask.cluster.retain("t")
    assert len(log.batches) == 1


def test_a_log_that_is_cut_off_loses_segments() -> None:
    ask = _asker()
    _write(ask, 9, 6, 3)
    log = ask.cluster.topic("t").partitions[0].log
    log.truncate(1)
    assert log.segments.bases == [0]
    log.restart(7)
    assert log.segments.bases == [7]


def test_compaction_leaves_the_active_segment_and_joins_the_others() -> None:
    ask = _asker(cleanup_policy="compact")
    _write(ask, 9, 6, 3, 0)
    ask.cluster.retain("t")
    log = ask.cluster.topic("t").partitions[0].log
    assert [record.offset for batch in log.batches for record in records(batch)] == [2, 3]
    assert log.segments.bases == [0, 3]
    assert ask(Fetch("t")).responses[0].partitions[0].records == log.batches[0].data


def test_segments_are_joined_while_they_fit() -> None:
    segments = Segments(SegmentLimits(size=10))
    segments.bases = [0, 5, 9, 12, 20]
    segments.merge([4, 5, 3, 10])
    assert segments.bases == [0, 9, 12, 20]


def test_a_search_for_a_time_overlooks_what_lies_behind_an_empty_batch() -> None:
    """A producer's last batch keeps its time when compaction has taken its records; the next segment is not searched."""
    ask = _asker(cleanup_policy="compact", segment_bytes="60")
    ask(Init(None, writer="w"))
    ask(Produce("t", writer="w", keys=(b"k",), ages=(2 * HOUR,)))
    _write(ask, 2, 1)
    ask.cluster.retain("t")
    assert [batch.records for batch in ask.cluster.topic("t").partitions[0].log.batches] == [0, 1, 1]
    assert ask(ListOffsets("t", age=2 * HOUR)).topics[0].partitions[0].offset == -1
    assert ask(ListOffsets("t", age=HOUR)).topics[0].partitions[0].offset == 2
