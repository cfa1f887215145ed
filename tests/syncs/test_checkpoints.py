"""Checkpoints: MM2's rule for which are written, and the records on real clusters as Kafka's own classes read them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Lab
from tests.opened import sync_checkpoints
from tools.kafka import RecordSeen, SandboxCluster, read_all
from tools.kafka.groups import commit_offsets
from tools.kafka.topics import delete_topics

from ferry.ledger.open_flow import open_flow
from ferry.pipeline.syncs import Syncs
from ferry.syncs.checkpoints import checkpoint_key, is_due, newest_checkpoints, plan_checkpoints
from ferry.syncs.names import SyncName
from ferry.syncs.translated_groups import TranslatedGroups
from ferry.translation.translated import Inexact, TranslatedPosition, Translation
from ferry.wire.internal_records import Checkpoint

Place = tuple[int, int]  # upstream, downstream


def position(upstream: int | None, downstream: int | None, **fields: object) -> TranslatedPosition:
    translation = None if downstream is None else Translation(downstream)
    given = {"group": "g", "topic": "t", "partition": 3, "remote_topic": "A.t", "metadata": "m"} | fields
    return TranslatedPosition(upstream_offset=upstream, translation=translation, **given)  # type: ignore[arg-type]


def groups(*positions: TranslatedPosition) -> TranslatedGroups:
    return TranslatedGroups(groups=("g",), positions=positions, left_out=())


def checkpoint(place: Place) -> Checkpoint:
    return Checkpoint("g", "A.t", 3, *place, "m")


@pytest.mark.unit
def test_a_checkpoint_with_metadata_that_are_left_out_by_now_is_replaced() -> None:
    """MirrorMaker 2's clients commit what the newest one holds."""
    before, now = checkpoint((10, 7)), replace(checkpoint((10, 7)), metadata="")
    assert is_due(now, before)
    assert not is_due(now, now)
    assert not is_due(before, now)
    assert not is_due(replace(now, upstream_offset=12), before)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("before", "now", "due"),
    [
        (None, (10, 7), True),
        ((10, 7), (10, 7), False),
        ((10, 7), (12, 7), False),  # the group moved, its place on the target did not
        ((10, 7), (12, 8), True),
        ((10, 7), (10, 8), True),  # translated better
        ((10, 7), (9, 6), True),  # rewound at the source
        ((10, 7), (9, 8), True),
        ((10, 7), (9, 7), True),
        ((10, 7), (12, 6), False),
        ((10, 7), (10, 6), False),
    ],
)
def test_a_checkpoint_is_written_by_the_rule_of_mirror_maker(before: Place | None, now: Place, due: bool) -> None:
    assert is_due(checkpoint(now), None if before is None else checkpoint(before)) == due
    standing = {} if before is None else {("g", "A.t", 3): checkpoint(before)}
    plan = plan_checkpoints(groups(position(*now)), standing)
    assert [entry for entry, _ in plan.due] == ([checkpoint(now)] if due else [])
    assert plan.unchanged == (not due)
    # What stands beyond the exact place is kept by the rule, and told.
    assert bool(plan.skipped) == (not due and before is not None and now[1] < before[1])


@pytest.mark.unit
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20))
def test_written_checkpoints_follow_the_group_and_are_never_written_twice(places: list[Place]) -> None:
    topic: list[Checkpoint] = []
    for place in places:
        standing = newest_checkpoints(topic)
        topic += [entry for entry, _ in plan_checkpoints(groups(position(*place)), standing).due]
        assert plan_checkpoints(groups(position(*place)), newest_checkpoints(topic)).due == ()
        newest = topic[-1]
        assert newest.upstream_offset <= place[0]
        assert newest.downstream_offset >= place[1]
        assert checkpoint_key(newest) == ("g", "A.t", 3)


@pytest.mark.unit
def test_positions_without_a_translation_are_named() -> None:
    never_read = position(None, 0, problem="never read")
    unknown = position(5, None, partition=4, problem="not copied yet")
    plan = plan_checkpoints(groups(never_read, unknown), {})
    assert (plan.due, plan.unchanged) == ((), 0)
    assert [(entry.what, entry.reason) for entry in plan.skipped] == [("group g, t-3", "never read"), ("group g, t-4", "not copied yet")]


@pytest.mark.unit
def test_an_inexact_position_is_written_by_the_same_rule() -> None:
    inexact = TranslatedPosition("g", "t", 3, "A.t", 12, Translation(6, Inexact.BACKFILLED))
    plan = plan_checkpoints(groups(inexact), {("g", "A.t", 3): checkpoint((10, 7))})
    assert (plan.due, plan.unchanged, plan.skipped) == ((), 1, ())
    (first,) = plan_checkpoints(groups(inexact), {}).due
    assert first == (Checkpoint("g", "A.t", 3, 12, 6, ""), None)


@pytest.fixture
def commit(source_cluster: SandboxCluster) -> Callable[..., None]:
    """Commit an offset as a consumer would: `commit(group, topic, {partition: offset}, metadata)`."""

    def at(group: str, topic: str, offsets: dict[int, int], metadata: str | None = None) -> None:
        places = {(topic, partition): offset for partition, offset in offsets.items()}
        commit_offsets(source_cluster.client_settings(), group, places, metadata)

    return at


@pytest.mark.long
@pytest.mark.brokers
def test_checkpoints_are_written_once_and_records_that_cannot_be_read_are_left_alone(lab: Lab, commit: Callable[..., None]) -> None:
    topic = lab.topic(lab.source, partitions=2)
    group = f"g-{topic}"
    flow = lab.flow(f"A->B.topics = {topic}", f"A->B.groups = {group}")
    name, remote = f"{flow.source.alias}.checkpoints.internal", f"{flow.source.alias}.{topic}"
    lab.produce(lab.source, topic, [(0, b"k", b"%d" % number) for number in range(100)])
    lab.run(flow)
    lab.produce(lab.source, topic, [(0, b"k", b"%d" % number) for number in range(100)])
    lab.run(flow)
    places = [record.offset for record in read_all(lab.target.client_settings(), remote)[0]]
    commit(group, topic, {0: 150}, "AgAAAaIj35AK")  # as Kafka Streams does
    planned = sync_checkpoints(flow, dry_run=True)
    assert [(change.action, change.reason) for change in planned.changes] == [("create", ""), ("write", "first")]
    before = time.time_ns() // 1_000_000
    assert sync_checkpoints(flow).changes == planned.changes

    def standing() -> list[RecordSeen]:
        (records,) = read_all(lab.target.client_settings(), name)
        return records

    (record,) = standing()
    assert record.key == b"".join((len(text).to_bytes(2, "big") + text.encode()) for text in (group, remote)) + bytes(4)
    metadata = b"\0\x0dAgAAAaIj35AK\0"  # confluent-kafka commits a C string with its end
    assert record.value == bytes(2) + (150).to_bytes(8, "big") + places[150].to_bytes(8, "big") + metadata
    assert before <= record.timestamp <= time.time_ns() // 1_000_000
    again = sync_checkpoints(flow)
    assert (again.changes, again.counts["unchanged"]) == ((), 1)
    for upstream, reason in ((160, "moved on"), (20, "rewound at the source")):
        commit(group, topic, {0: upstream}, "it may count offsets, which shift")
        assert [change.reason for change in sync_checkpoints(flow).changes] == [reason]
        newest = standing()[-1].value or b""
        assert newest[2:] == upstream.to_bytes(8, "big") + places[upstream].to_bytes(8, "big") + bytes(2)
    producer = Producer(lab.target.client_settings())
    producer.produce(name, None, record.key)
    producer.produce(name, b"\0\1" + (record.value or b"")[2:], record.key)
    assert producer.flush(30) == 0
    marred = sync_checkpoints(flow)
    assert (marred.changes, marred.failed) == ((), ())
    assert [line for line in marred.notices if f"topic {name}: the record at 0:" in line and "left alone" in line] == list(marred.notices)
    assert len(marred.notices) == 2
    assert len(standing()) == 5


@pytest.mark.long
@pytest.mark.brokers
def test_checkpoints_that_cannot_be_read_are_named_and_groups_are_synced_all_the_same(lab: Lab, commit: Callable[..., None]) -> None:
    topic = lab.topic(lab.source)
    group = f"g-{topic}"
    flow = lab.flow(f"A->B.topics = {topic}", f"A->B.groups = {group}", "A->B.sync.group.offsets.enabled = true")
    name = f"{flow.source.alias}.checkpoints.internal"
    lab.produce(lab.source, topic, [(0, b"k", b"%d" % number) for number in range(10)])
    lab.run(flow)
    commit(group, topic, {0: 7})
    assert not sync_checkpoints(flow).failed
    segment = lab.target.directory / "data" / f"{name}-0" / f"{0:020d}.log"
    with segment.open("r+b") as log:  # the downstream offset of the only checkpoint: the record can be decoded as before
        content = bytearray(log.read())
        at = content.index(topic.encode() + bytes(4)) + len(topic) + 4
        content[at + 17] ^= 0xFF
        log.seek(0)
        log.write(content)
    with open_flow(flow) as opened:
        syncs = Syncs(opened)
        (failure,) = syncs.carry_out(SyncName.CHECKPOINTS, on_request=True).failed
        assert (failure.what, failure.error) == ("sync checkpoints", "UnreadableRecord")
        assert f"{name}-0: the batch at offset 0 does not match its checksum" in failure.problem
        synced = syncs.carry_out(SyncName.GROUPS, on_request=True)
        remote = f"{flow.source.alias}.{topic}"
        assert ([change.what for change in synced.changes], synced.failed) == ([f"group {group}, {remote}-0"], ())
        delete_topics(lab.target.client_settings(), name)
        again = syncs.carry_out(SyncName.CHECKPOINTS, on_request=True)
        assert ([(change.action, change.reason) for change in again.changes], again.failed) == ([("create", ""), ("write", "first")], ())
