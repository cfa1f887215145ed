"""Group offset sync on real brokers; the translation is given, unless a test says otherwise."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from tests.conftest import Lab
from tests.opened import explain_group, open_groups, sync_groups
from tests.waiting import NEVER_SECONDS
from tools.kafka import SandboxCluster
from tools.kafka.groups import commit_offsets

from ferry.clusters.groups.consumer_groups import ConsumerGroups
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.syncs import group_offsets
from ferry.syncs.translated_groups import GroupLeftOut, TranslatedGroups
from ferry.translation.translated import Inexact, TranslatedPosition, Translation

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
TopicFactory = Callable[..., str]
Translate = Callable[..., None]
Images = Mapping[int, int]
GroupMember = Callable[..., AbstractContextManager[Consumer]]


@pytest.fixture
def translate(monkeypatch: pytest.MonkeyPatch) -> Translate:
    """Give the translation: `translate({group: positions}, left_out)`."""

    def give(positions: Mapping[str, list[TranslatedPosition]], *left_out: GroupLeftOut) -> None:
        flat = tuple(entry for group in sorted(positions) for entry in positions[group])
        found = TranslatedGroups(tuple(sorted(positions)), flat, left_out)
        monkeypatch.setattr(group_offsets, "translated_groups", lambda _: found)

    return give


def positions(group: str, topic: str, images: Images, *, metadata: str = "", reason: Inexact | None = None) -> list[TranslatedPosition]:
    return [
        TranslatedPosition(group, "t", partition, topic, image, Translation(image, reason), metadata) for partition, image in images.items()
    ]


def new_group(prefix: str = "g") -> str:
    return f"{prefix}-{secrets.token_hex(4)}"


def commit(cluster: SandboxCluster, group: str, topic: str, images: Images) -> None:
    """As a client that is not Ferry."""
    commit_offsets(cluster.client_settings(), group, {(topic, partition): offset for partition, offset in images.items()})


def committed(cluster: SandboxCluster, group: str, topic: str, partitions: int = 2) -> dict[int, int]:
    """As a client that is not Ferry sees it."""
    consumer = Consumer({**cluster.client_settings(), "group.id": group})
    found = consumer.committed([KafkaPartition(topic, number) for number in range(partitions)], timeout=10)
    consumer.close()
    return {entry.partition: entry.offset for entry in found if entry.offset >= 0}


def before_writing(monkeypatch: pytest.MonkeyPatch, step: Callable[[], object], *, after: bool = False) -> None:
    """Something that happens between the look at the target and the write (or between write and reading back)."""
    write = ConsumerGroups.commit_all

    def patched(self: ConsumerGroups, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]) -> object:
        if after:
            outcome = write(self, offsets)
            step()
            return outcome
        step()
        return write(self, offsets)

    monkeypatch.setattr(ConsumerGroups, "commit_all", patched)


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.target, partitions=2)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_group_and_partition_by_its_own_state(
    protocol: str, lab: Lab, topic: str, translate: Translate, group_member: GroupMember, share_group: str
) -> None:
    flow = lab.flow()
    unknown, idle, left, ahead, active, failed = (new_group(name) for name in ("unknown", "idle", "left", "ahead", "active", "failed"))
    commit(lab.target, idle, topic, {0: 3})
    with group_member(lab.target, left, topic, **{"group.protocol": protocol}) as consumer:
        consumer.commit(offsets=[KafkaPartition(topic, 0, 4)], asynchronous=False)
    commit(lab.target, ahead, topic, {0: 50, 1: 5})
    wanted = {group: positions(group, topic, {0: 10, 1: 11}) for group in (unknown, left, ahead, active)}
    wanted[idle] = [
        *positions(idle, topic, {0: 3, 1: 7}, reason=Inexact.AHEAD),
        *positions(idle, topic, {9: 1}),
        *positions(idle, "gone", {0: 1}),
    ]
    wanted[unknown] = positions(unknown, topic, {0: 10, 1: 11}, metadata="theirs")
    wanted[share_group] = positions(share_group, topic, {0: 10})
    translate(wanted, GroupLeftOut("share", "a share group"), GroupLeftOut(failed, "not now", "GroupFailed"))
    with group_member(lab.target, active, topic, **{"group.protocol": protocol, "client.id": "reader"}):
        planned = sync_groups(flow, dry_run=True)
        assert committed(lab.target, unknown, topic) == {}
        outcome = sync_groups(flow)
    assert [replace(change, detail="") for change in planned.changes] == [replace(change, detail="") for change in outcome.changes]
    assert {group: committed(lab.target, group, topic) for group in wanted} == {
        unknown: {0: 10, 1: 11},
        idle: {0: 3, 1: 7},
        left: {0: 10, 1: 11},
        ahead: {0: 50, 1: 11},
        active: {},
        share_group: {},
    }
    assert {change.what: (change.detail, change.reason) for change in outcome.changes} == {
        f"group {ahead}, {topic}-1": ("5 -> 11", ""),
        f"group {idle}, {topic}-1": ("none -> 7", "not exact (ahead): records are read again"),
        f"group {left}, {topic}-0": ("4 -> 10", ""),
        f"group {left}, {topic}-1": ("none -> 11", ""),
        f"group {unknown}, {topic}-0": ("none -> 10", ""),
        f"group {unknown}, {topic}-1": ("none -> 11", ""),
    }
    alias = flow.target.alias
    assert {entry.what: entry.reason for entry in outcome.skipped} == {
        "group share": "a share group",
        f"group {ahead}, {topic}-0": f"{alias} is ahead: at 50, translated 10; a group never goes back",
        f"group {active}": f"it has 1 member on {alias} (client id reader on 127.0.0.1), and only groups without members are written",
        f"group {share_group}": f"it is a share group on {alias}: Ferry translates only offsets of classic, consumer and streams groups",
        f"group {idle}": "up to date in 1 of 4 partitions",
        f"group {idle}, {topic}-9": f"{alias} has no partition {topic}-9",
        f"group {idle}, gone-0": f"{alias} has no partition gone-0",
    }
    assert [(failure.what, failure.error) for failure in outcome.failed] == [(f"group {failed}", "GroupFailed")]
    with open_groups(flow.target) as groups:
        offsets = groups.offsets([unknown, left])
    assert [entry.metadata for entry in offsets[unknown].values()] == ["theirs", "theirs"]  # type: ignore[union-attr]
    assert [entry.metadata for entry in offsets[left].values()] == ["", ""]  # type: ignore[union-attr]
    again = sync_groups(flow)
    assert [change.what for change in again.changes] == [f"group {active}, {topic}-{number}" for number in range(2)]  # it has left
    assert again.counts["up_to_date"] == 7


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_becomes_active_before_the_write(
    protocol: str, lab: Lab, topic: str, translate: Translate, group_member: GroupMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, other = new_group(), new_group()
    translate({name: positions(name, topic, {0: 10, 1: 11}) for name in (group, other)})
    with group_member(lab.target, new_group(), topic):  # so that the consumer below only has to join
        joining = group_member(lab.target, group, topic, **{"group.protocol": protocol})
        before_writing(monkeypatch, joining.__enter__)
        outcome = sync_groups(lab.flow())
        joining.__exit__(None, None, None)
    assert not outcome.failed
    (skipped,) = outcome.skipped
    assert skipped.what == f"group {group}"
    assert "became active" in skipped.reason
    assert "UNKNOWN_MEMBER_ID" in skipped.reason
    assert committed(lab.target, group, topic) == {}
    assert committed(lab.target, other, topic) == {0: 10, 1: 11}


def test_another_offset_that_is_read_back_is_a_failure_unless_the_group_is_active(
    lab: Lab, topic: str, translate: Translate, group_member: GroupMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, vanished, active, huge = (new_group(name) for name in ("changed", "vanished", "active", "huge"))
    found = {name: positions(name, topic, {0: 10}) for name in (changed, vanished, active)}
    found[huge] = positions(huge, topic, {0: 10}, metadata="x" * 5000)
    translate(found)
    joined = []

    def meanwhile() -> None:
        commit(lab.target, changed, topic, {0: 8})
        admin = AdminClient(lab.target.client_settings())
        admin.delete_consumer_groups([vanished])[vanished].result(10)
        joining = group_member(lab.target, active, topic)
        consumer = joining.__enter__()
        joined.append(joining)
        consumer.commit(offsets=[KafkaPartition(topic, 0, 12)], asynchronous=False)

    before_writing(monkeypatch, meanwhile, after=True)
    outcome = sync_groups(lab.flow())
    joined[0].__exit__(None, None, None)
    problems = {failure.what: failure.problem for failure in outcome.failed}
    assert "10 was written" in problems.pop(f"group {changed}, {topic}-0")
    assert "nothing was read back" in problems.pop(f"group {vanished}, {topic}-0")
    assert "OFFSET_METADATA_TOO_LARGE" in problems.pop(f"group {huge}, {topic}-0")
    assert not problems
    (skipped,) = outcome.skipped
    assert skipped.what == f"group {active}, {topic}-0"
    assert "has 12 there now; translated 10" in skipped.reason
    assert not outcome.changes
    assert outcome.notices == ("4 groups with something to write, and none was written",)


@pytest.mark.long
def test_a_thousand_groups(lab: Lab) -> None:
    """Ten partitions each, translated and all; the design asks for less than ten seconds."""
    topic, prefix = lab.topic(lab.source, partitions=10), new_group("many")
    flow = lab.flow(f"A->B.topics = {topic}", f"A->B.groups = {prefix}.*")
    lab.produce(lab.source, topic, [(number % 10, b"k", b"v") for number in range(1000)])
    lab.run(flow)
    offsets = {TopicPartition(topic, partition): CommittedOffset(50 + partition) for partition in range(10)}
    names = [f"{prefix}-{number:04}" for number in range(1000)]
    with open_groups(flow.source) as groups:
        assert all(refused == {} for refused in groups.commit_all(dict.fromkeys(names, offsets)).values())
    began = time.monotonic()
    outcome = sync_groups(flow)
    print(f"first sync: {time.monotonic() - began:.1f} s")  # noqa: T201 - for people
    others = [
        entry for entry in outcome.skipped if entry.reason not in {"not in the property groups", "Ferry's own group"}
    ]  # groups of other tests
    assert (len(outcome.changes), outcome.failed, others) == (10_000, (), [])
    assert committed(lab.target, names[-1], f"{flow.source.alias}.{topic}", 10) == {partition: 50 + partition for partition in range(10)}
    began = time.monotonic()
    again = sync_groups(flow)
    print(f"second sync: {time.monotonic() - began:.1f} s")  # noqa: T201 - for people
    assert (len(again.changes), again.counts["up_to_date"]) == (0, 10_000)


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_goes_on_at_the_right_record(protocol: str, lab: Lab, group_member: GroupMember) -> None:
    """Source, copy, translation, sync and the target's consumer, with nothing given. Commit markers make the offsets differ."""
    topic, group = lab.topic(lab.source, partitions=3), new_group(protocol)
    flow = lab.flow(f"A->B.topics = {topic}", f"A->B.groups = {group}")
    for start in (0, 30):
        lab.produce(lab.source, topic, [(partition, b"k", b"%d" % number) for partition in (0, 1) for number in range(start, start + 30)])
        lab.run(flow)
    with group_member(lab.source, group, topic, **{"group.protocol": protocol}) as consumer:
        consumer.commit(offsets=[KafkaPartition(topic, 0, 33), KafkaPartition(topic, 1, 60)], asynchronous=False)
    explained = explain_group(flow, group).partitions
    assert [(entry.source_lag, entry.exact, entry.decision) for entry in explained] == [
        (27, True, "write"),
        (0, True, "write"),
        (None, False, "write"),
    ]
    outcome = sync_groups(flow)
    assert not outcome.failed
    written = [(entry.target_offset, entry.translated, entry.decision) for entry in explain_group(flow, group).partitions]
    assert written == [(entry.translated, entry.translated, "up to date") for entry in explained]
    assert explained[0].translated != 33
    lab.produce(lab.source, topic, [(partition, b"k", b"%d" % number) for partition in (0, 1, 2) for number in (60, 61)])
    lab.run(flow)
    remote = f"{flow.source.alias}.{topic}"
    seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
    settings = {"group.protocol": protocol, "auto.offset.reset": "latest", "isolation.level": "read_committed"}
    with group_member(lab.target, group, remote, **settings) as consumer:
        deadline = time.monotonic() + NEVER_SECONDS
        while sum(map(len, seen.values())) < 33:
            record = consumer.poll(0.2)
            if record is not None and record.error() is None:
                seen[record.partition()].append(int(record.value()))
            assert time.monotonic() < deadline, seen
    assert seen == {0: list(range(33, 62)), 1: [60, 61], 2: [60, 61]}
