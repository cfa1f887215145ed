"""Offset syncs: which pairs are written, what MM2's store makes of them on real clusters, and that nothing is written twice."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from confluent_kafka import Producer
from hypothesis import example, given
from hypothesis import strategies as st
from tests.conftest import Lab
from tests.opened import sync_offset_syncs
from tools.kafka import SandboxCluster, read_all

from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.state import Head
from ferry.syncs.offset_syncs import copied_runs, new_syncs
from ferry.wire.internal_records import OffsetSync
from ferry.wire.runs import OffsetRun

FlowFactory = Callable[..., Flow]
KEY = TopicPartition("t", 0)
MOST = 66


@st.composite
def increasing_runs(draw: st.DrawFn) -> list[OffsetRun]:
    runs, upstream, downstream = [], draw(st.integers(0, 1_000)), draw(st.integers(0, 1_000))
    for _ in range(draw(st.integers(1, 8))):
        upstream += draw(st.integers(0, 50))
        downstream += draw(st.integers(0, 50))
        count = draw(st.one_of(st.integers(1, 5), st.integers(1, 1 << 40)))
        runs.append((upstream, downstream, count))
        upstream, downstream = upstream + count + 1, downstream + count
    return runs


def images(runs: list[OffsetRun], upstream: int) -> int | None:
    return next((downstream + upstream - start for start, downstream, count in runs if start <= upstream < start + count), None)


@pytest.mark.unit
@given(runs=increasing_runs(), spacing=st.integers(0, 1_000), cut=st.floats(0, 1))
def test_syncs_are_pairs_of_records_that_only_go_up(runs: list[OffsetRun], spacing: int, cut: float) -> None:
    first = new_syncs(KEY, runs, None, spacing)
    newest = runs[-1][0] + runs[-1][2] - 1
    assert (first[0].upstream_offset, first[-1].upstream_offset) == (runs[0][0], newest)
    assert new_syncs(KEY, runs, first[-1], spacing) == ()
    standing = first[int(cut * (len(first) - 1))]
    more = new_syncs(KEY, runs, standing, spacing)
    for syncs in (first, (standing, *more)):
        assert len(syncs) <= MOST
        assert [images(runs, sync.upstream_offset) for sync in syncs] == [sync.downstream_offset for sync in syncs]
        ups, downs = [sync.upstream_offset for sync in syncs], [sync.downstream_offset for sync in syncs]
        assert all(a < b for a, b in pairwise(ups))
        assert all(a < b for a, b in pairwise(downs))
    if standing.upstream_offset < newest:
        assert more[-1].upstream_offset == newest


@pytest.mark.unit
@given(start=st.integers(0, 100), count=st.integers(1, 1 << 50), spacing=st.integers(0, 1_000), where=st.floats(0, 1))
def test_the_distance_to_the_next_sync_below_grows_as_in_mm2s_store(start: int, count: int, spacing: int, where: float) -> None:
    syncs = new_syncs(KEY, [(start, 7, count)], None, spacing)
    newest = start + count - 1
    upstream = min(newest, start + int(where * (count - 1)))
    below = syncs[bisect_right(syncs, upstream, key=lambda sync: sync.upstream_offset) - 1].upstream_offset
    assert upstream - below <= max(spacing, 1, newest - upstream)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("last", "anew"),
    [
        (OffsetSync(*KEY, 120, 60), False),  # of a record: what follows
        (OffsetSync(*KEY, 99, 39), False),  # MM2's, of what it had copied before
        (OffsetSync(*KEY, 40, 39), False),  # older than all that the ledger still knows
        (OffsetSync(*KEY, 120, 61), True),  # the remote topic was created again
        (OffsetSync(*KEY, 40, 70), True),
        (OffsetSync(*KEY, 500, 400), True),  # the source topic was created again
        (OffsetSync(*KEY, 155, 95), True),  # no record stands there
    ],
)
def test_the_last_sync_of_the_topic_decides_where_to_begin(last: OffsetSync, anew: bool) -> None:
    runs = [(100, 40, 50), (160, 95, 40)]
    found = new_syncs(KEY, runs, last, 1)
    assert (found[0] == OffsetSync(*KEY, 100, 40)) == anew
    assert anew or found[0].upstream_offset > last.upstream_offset
    assert found[-1] == OffsetSync(*KEY, 199, 134)


@pytest.mark.unit
def test_only_what_was_copied_in_order_between_todays_topics_counts() -> None:
    head = Head("t", 0, 30, "s", "A.t", "r")
    copied = Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", 10, 20, runs=((10, 0, 5), (16, 5, 4)))
    receipts = [
        replace(copied, upstream_start=20, upstream_end=30, runs=((20, 40, 10),)),
        copied,
        replace(copied, kind=ReceiptKind.BACKFILLED, upstream_start=0, upstream_end=10, runs=((0, 20, 10),)),
        replace(copied, source_topic_id="old", runs=((0, 0, 10),)),
        replace(copied, remote_topic_id="old", runs=((0, 0, 10),)),
        replace(copied, upstream_start=12, upstream_end=22, runs=((12, 30, 10),)),  # copied again
        replace(copied, partition=1),
    ]
    assert copied_runs(receipts, {KEY: head}, {}) == {KEY: ((10, 0, 5), (16, 5, 4), (20, 38, 2), (22, 42, 8))}


@pytest.mark.unit
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=9), upstream=st.integers(0, 99), downstream=st.integers(0, 99))
@example(lengths=[5, 5, 5], upstream=7, downstream=8)
def test_what_is_before_the_last_sync_does_not_matter(lengths: list[int], upstream: int, downstream: int) -> None:
    ends = list(accumulate(lengths, initial=0))
    heads = {KEY: Head("t", 0, ends[-1], "s", "A.t", "r")}
    last = OffsetSync(*KEY, upstream, downstream)
    receipts = [
        Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", start, end, end + number, ((start, start + number, end - start),))
        for number, (start, end) in enumerate(pairwise(ends))
    ]
    everything, later = copied_runs(receipts, heads, {})[KEY], copied_runs(receipts, heads, {KEY: last})[KEY]
    assert new_syncs(KEY, later, last, 1) == new_syncs(KEY, everything, last, 1)
    if everything == ((0, 0, 5), (5, 6, 5), (10, 12, 5)) and (upstream, downstream) == (7, 8):
        assert later == everything[1:]


@pytest.mark.long
@pytest.mark.brokers
def test_syncs_are_written_once_after_each_run(lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=2)
    flow = lab.flow(f"A->B.topics = {topic}", "offset.lag.max = 10")
    on_source = replace(flow, mirroring=replace(flow.mirroring, offset_syncs_topic_location="source"))
    places = [(flow, lab.target, flow.source.alias), (on_source, lab.source, flow.target.alias)]
    lab.produce(lab.source, topic, [(0, b"k", b"%d" % number) for number in range(1_000)])
    lab.run(flow)
    for settings, cluster, other in places:
        name = f"mm2-offset-syncs.{other}.internal"
        planned = sync_offset_syncs(settings, dry_run=True)
        assert [(change.what, change.action) for change in planned.changes] == [
            (f"topic {name} on {settings.source.alias if settings is on_source else settings.target.alias}", "create"),
            (f"offset syncs of {topic}-0", "write"),
        ]
        assert sync_offset_syncs(settings).changes == planned.changes
        assert sync_offset_syncs(settings).changes == ()
        # The source partition has no holes: the upstream offset is the place in the remote partition.
        remote = [record.offset for record in read_all(lab.target.client_settings(), f"{flow.source.alias}.{topic}")[0]]
        distances = [999, 640, 320, 160, 80, 40, 20, 10, 0]
        assert written(cluster, name, topic) == [(999 - distance, remote[999 - distance]) for distance in distances]
    lab.produce(lab.source, topic, [(0, b"k", b"x")])
    lab.run(flow)
    remote = [record.offset for record in read_all(lab.target.client_settings(), f"{flow.source.alias}.{topic}")[0]]
    for settings, cluster, other in places:
        (change,) = sync_offset_syncs(settings).changes
        assert change.detail == f"1 up to upstream 1000, downstream {remote[-1]}"
        assert written(cluster, f"mm2-offset-syncs.{other}.internal", topic)[-2:] == [(999, remote[-2]), (1000, remote[-1])]


def written(cluster: SandboxCluster, name: str, topic: str) -> list[tuple[int, int]]:
    """(upstream, downstream) of partition 0 of `topic`, in log order."""
    ((*records,),) = read_all(cluster.client_settings(), name)
    assert {record.key for record in records} == {len(topic).to_bytes(2, "big") + topic.encode() + bytes(4)}
    values = [record.value or b"" for record in records]
    return [(int.from_bytes(value[:8], "big"), int.from_bytes(value[8:], "big")) for value in values]


@pytest.mark.brokers
def test_records_that_cannot_be_read_are_named_and_left_alone(lab: Lab) -> None:
    flow = lab.flow()
    name = lab.topic(lab.target, name=f"mm2-offset-syncs.{flow.source.alias}.internal")
    producer = Producer(lab.target.client_settings())
    sync = OffsetSync("t", 0, 1, 1)
    for key, value in [(sync.encode_key(), None), (b"x", b"y"), (sync.encode_key(), sync.encode_value()), *[(None, b"")] * 5]:
        producer.produce(name, value, key)
    assert producer.flush(30) == 0
    outcome = sync_offset_syncs(flow)
    assert (outcome.changes, outcome.failed) == ((), ())
    first, second, *_, more = outcome.notices
    assert f"topic {name}: the record at 0:0 cannot be read" in first
    assert "0:1 cannot" in second
    assert (len(outcome.notices), more) == (6, "… and 2 more records that cannot be read")
    assert len(read_all(lab.target.client_settings(), name)[0]) == 8
