"""Groups of real clusters, translated in one pass: both directions, both naming policies."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from kafka.protocol.consumer.group import JoinGroupRequest, LeaveGroupRequest, OffsetCommitRequest, SyncGroupRequest
from tests.conftest import Lab
from tests.opened import ask_cluster, explain_group, open_groups, sync_groups, translated_groups
from tools.kafka import SandboxCluster, read_all
from tools.kafka.groups import commit_offsets
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow, load_config
from ferry.errors import ArgumentError
from ferry.ledger.run_report import RunReport
from ferry.syncs.translated_groups import TranslatedGroups
from ferry.translation.translated import Inexact, TranslatedPosition, Translation

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
Produce = Callable[..., None]


def commit(cluster: SandboxCluster, group: str, offsets: Mapping[tuple[str, int], int], metadata: str | None = None) -> None:
    """As a client that is not Ferry."""
    commit_offsets(cluster.client_settings(), group, offsets, metadata)


def new_group(prefix: str = "g") -> str:
    return f"{prefix}-{secrets.token_hex(4)}"


def said(found: TranslatedGroups, group: str) -> dict[tuple[str, int], TranslatedPosition]:
    return {(entry.topic, entry.partition): entry for entry in found.positions if entry.group == group}


def numbers(entry: TranslatedPosition) -> tuple[str, int | None, int | None, bool]:
    translation = entry.translation
    return entry.remote_topic, entry.upstream_offset, translation.image if translation else None, bool(translation and translation.exact)


async def joins(connection: ClusterConnection, group: str, protocol_type: str, topic: str) -> None:
    """A member joins, commits offset 3 of the topic's first partition, and leaves. Groups of librdkafka have one protocol type only."""
    (node,) = connection.brokers()
    protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="sessioned", metadata=b"")]
    times = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
    # From version 4 on, a member would have to join twice.
    join = JoinGroupRequest(group_id=group, member_id="", protocol_type=protocol_type, protocols=protocols, max_version=3, **times)
    joined = await connection.send(join, node, 60_000)
    member = {"group_id": group, "member_id": joined.member_id}
    assignments = [SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")]
    generation = joined.generation_id
    synced = await connection.send(
        SyncGroupRequest(**member, generation_id=generation, assignments=assignments, max_version=3), node, 60_000
    )
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=3, committed_metadata="")
    topics = [kind(name=topic, partitions=[partition])]
    commit = OffsetCommitRequest(**member, generation_id_or_member_epoch=generation, topics=topics, max_version=5)
    committed = await connection.send(commit, node, 60_000)
    left = await connection.send(LeaveGroupRequest(**member, max_version=2), node, 60_000)
    codes = [joined.error_code, synced.error_code, committed.topics[0].partitions[0].error_code, left.error_code]
    assert codes == [0, 0, 0, 0]


@pytest.fixture
def backward(flow_factory: Callable[..., Flow]) -> Callable[[Flow], Flow]:
    """The same flow the other way."""

    def turned(flow: Flow) -> Flow:
        return replace(flow, name=f"{flow.target.alias}->{flow.source.alias}", source=flow.target, target=flow.source)

    return turned


def records(count: int, partition: int = 0, mark: str = "") -> list[tuple[int, bytes, bytes]]:
    return [(partition, b"k", f"{mark}{number}".encode()) for number in range(count)]


def test_a_group_of_another_protocol_type_is_named_and_stops_no_other(lab: Lab) -> None:
    topic, workers, plain = lab.topic(lab.source), new_group("workers"), new_group()
    flow = lab.flow(f"A->B.topics = {topic}", f"A->B.groups = {workers},{plain}")
    lab.produce(lab.source, topic, records(5))
    lab.run(flow)
    commit(lab.source, plain, {(topic, 0): 2})  # and now the topic of the groups' offsets is there
    ask_cluster(flow.source, joins, workers, "connect", topic, milliseconds=60_000)
    found = translated_groups(flow)
    assert found.groups == (plain,)
    assert {entry.group: entry.reason for entry in found.left_out}[workers] == (
        "it is a group of protocol type connect: Ferry translates only offsets of consumers' groups"
    )


def test_every_group_and_partition_is_listed_with_its_reason(lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=3)
    other = lab.topic(lab.source)
    plain, excluded, at_end = new_group(), new_group("console-consumer"), new_group()
    path = lab.config(f"A->B.topics = {topic}", f"A->B.groups = {plain},{excluded},{at_end},{plain}s")
    flow = load_config(path).flows[0]
    for _ in range(2):  # two transactions: a marker lies between
        lab.produce(lab.source, topic, records(50) + records(10, 1))
        lab.run(flow)
    commit(lab.source, plain, {(topic, 0): 70, (topic, 1): 0, (other, 0): 0}, "AgAAAaIj35AK")  # as Kafka Streams does
    commit(lab.source, excluded, {(topic, 0): 1})
    commit(lab.source, at_end, {(topic, 0): 100, (topic, 1): 20, (topic, 2): 0})
    lab.produce(lab.source, topic, records(5))
    ahead = new_group()
    commit(lab.source, ahead, {(topic, 0): 105})

    found = translated_groups(flow)
    remote = f"{flow.source.alias}.{topic}"
    positions = said(found, plain)
    assert found.groups == tuple(sorted((plain, at_end)))
    assert {key: numbers(entry) for key, entry in positions.items()} == {
        (topic, 0): (remote, 70, 71, True),
        (topic, 1): (remote, 0, 0, True),
        (topic, 2): (remote, None, 0, False),
        (other, 0): (f"{flow.source.alias}.{other}", 0, None, False),
    }
    assert positions[topic, 0].metadata.rstrip("\0") == "AgAAAaIj35AK"  # confluent-kafka sends the text's end too
    assert positions[topic, 2].problem == "the group has no offset there"
    assert positions[other, 0].problem == "the flow does not copy the topic: not in the property topics"
    assert [numbers(entry)[1:] for entry in said(found, at_end).values()] == [(100, 101, True), (20, 21, True), (0, 0, True)]
    assert positions[topic, 2].translation == Translation(0, Inexact.NO_OFFSET)
    reasons = {entry.group: entry.reason for entry in found.left_out}
    assert (reasons[excluded], reasons[ahead]) == ("in the property groups.exclude", "not in the property groups")
    assert reasons[f"{plain}s"] == f"cluster {flow.source.alias} has no such group, though groups names it"
    named = translated_groups(flow, [ahead])
    assert [entry.translation.reason for entry in named.positions if entry.translation] == [
        Inexact.AHEAD,
        Inexact.NO_OFFSET,
        Inexact.NO_OFFSET,
    ]
    with pytest.raises(ArgumentError, match=f"{flow.source.alias} has no group nobody"):
        translated_groups(flow, ["nobody"])

    # The way back, by the same ledger, from what a group reads on the target.
    reader = new_group()
    commit(lab.target, reader, {(remote, 0): 71, (remote, 1): 22})
    back = said(translated_groups(flow, [reader], reverse=True), reader)
    assert [(*numbers(entry), entry.problem) for entry in back.values()] == [
        (topic, 71, 70, True, ""),
        (topic, 22, 20, True, ""),
        (topic, None, 0, False, "the group has no offset there"),
    ]

    answer = CliRunner().invoke(app, ["translate", str(path), "--flow", flow.name, "--group", reader, "--reverse", "--json"])
    assert answer.exit_code == 0
    told = json.loads(answer.stdout)
    columns = ("group", "topic", "partition", "upstream_offset", "downstream_offset", "exact", "reason")
    assert [tuple(row[column] for column in columns) for row in told["positions"]][1:] == [
        (reader, topic, 1, 20, 22, True, ""),
        (reader, topic, 2, 0, None, False, "no-offset; the group has no offset there"),
    ]
    answer = CliRunner().invoke(app, ["translate", str(path), "--flow", flow.name])
    assert answer.exit_code == 0
    assert f"group {excluded}: left out: in the property groups.exclude" in answer.stderr.replace("\n", " ")


def test_metadata_that_may_count_offsets_are_kept_only_where_offsets_do_not_shift(lab: Lab) -> None:
    """`bAAPfn8A`: what Confluent's Parallel Consumer commits with offset 5 if it has done later records, but not this one."""
    topic, group = lab.topic(lab.source), new_group()
    flow = lab.flow(f"A->B.topics = {topic}", f"A->B.groups = {group}", "A->B.sync.group.offsets.enabled = true")
    key, remote = (topic, 0), TopicPartition(f"{flow.source.alias}.{topic}", 0)

    def seen() -> tuple[int | None, str, Inexact | None]:
        entry = said(translated_groups(flow), group)[key]
        assert entry.translation
        return entry.translation.image, entry.metadata.rstrip("\0"), entry.translation.reason

    lab.produce(lab.source, topic, records(10))
    lab.run(flow)
    commit(lab.source, group, {key: 5}, "bAAPfn8A")
    assert seen() == (5, "bAAPfn8A", None)
    lab.produce(lab.source, topic, records(10))
    # It may say something about the ten, which will be behind a commit marker.
    assert seen() == (5, "", Inexact.METADATA)
    lab.run(flow)
    for offset, image in ((5, 5), (15, 16)):
        commit(lab.source, group, {key: offset}, "bAAPfn8A")
        assert seen() == (image, "", Inexact.METADATA)
    (change,) = sync_groups(flow).changes
    assert "not exact (metadata): the source's commit metadata may count offsets" in change.reason
    with open_groups(flow.target) as groups:
        assert groups.offsets([group])[group] == {remote: CommittedOffset(16)}


def test_a_partition_without_an_offset_is_named_or_left_to_the_reset_policy(lab: Lab) -> None:
    topic, latest, earliest = lab.topic(lab.source, partitions=2), new_group("latest"), new_group()
    flow = load_config(
        lab.config(
            f"A->B.topics = {topic}",
            f"A->B.groups = {latest},{earliest}",
            "A->B.ferry.groups.latest = latest-.*",
            "A->B.sync.group.offsets.enabled = true",
        )
    ).flows[0]
    lab.produce(lab.source, topic, records(5) + records(5, 1))
    lab.run(flow)
    for group in (latest, earliest):
        commit(lab.source, group, {(topic, 0): 2})
    found = translated_groups(flow)
    assert said(found, latest)[topic, 1].translation is None
    assert said(found, earliest)[topic, 1].translation == Translation(0, Inexact.NO_OFFSET)
    outcome, remote = sync_groups(flow), f"{flow.source.alias}.{topic}"
    assert {change.what: change.reason for change in outcome.changes} == {
        f"group {latest}, {remote}-0": "",
        f"group {earliest}, {remote}-0": "",
        f"group {earliest}, {remote}-1": "the group has no offset there: from the beginning of what was copied",
    }
    assert {entry.what: entry.reason for entry in outcome.skipped}[f"group {latest}, {remote}-1"] == (
        "the group has no offset there: by ferry.groups.latest its auto.offset.reset decides"
    )


@pytest.mark.parametrize("group", ["", " ", ".", "ünï ☃", "x" * 10_000])
def test_odd_names_of_groups(group: str, lab: Lab) -> None:
    """Brokers take commits for every name, the empty one too; only a classic group may have that."""
    topic, plain = lab.topic(lab.source), new_group()
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.sync.group.offsets.enabled = true")
    lab.produce(lab.source, topic, records(5))
    lab.run(flow)
    for name in (group, plain):
        with open_groups(flow.source) as groups:
            assert groups.commit(name, {TopicPartition(topic, 0): CommittedOffset(2)}) == {}
    outcome = sync_groups(flow)
    assert outcome.failed == ()
    assert {f"group {name}, {flow.source.alias}.{topic}-0" for name in (group, plain)} <= {change.what for change in outcome.changes}
    assert explain_group(flow, group).partitions[0].target_offset == 2


def test_a_group_is_translated_back_to_the_topic_that_its_topic_came_from(lab: Lab, backward: Callable[[Flow], Flow]) -> None:
    topic = lab.topic(lab.target)
    flow = lab.flow(f"A->B.topics = .*{topic}")
    back_topic = f"{flow.target.alias}.{topic}"
    for _ in range(2):
        lab.produce(lab.target, topic, records(10))
        lab.run(backward(flow))
    group = new_group()
    commit(lab.source, group, {(back_topic, 0): 16})
    (entry,) = translated_groups(flow, [group]).positions
    assert numbers(entry) == (topic, 16, 15, True)
    # A flow from a cluster of another name has no ledger here.
    stranger = replace(flow, target=replace(flow.target, alias="x"))
    assert translated_groups(replace(stranger, topics=(".*",)), [group]).positions[0].translation is None


@pytest.mark.long
def test_a_topic_with_one_name_on_both_sides_is_translated_by_both_ledgers(lab: Lab, backward: Callable[[Flow], Flow]) -> None:
    topic = lab.topic(lab.source)
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.replication.policy.class = IdentityReplicationPolicy")
    lab.produce(lab.source, topic, records(20, mark="a"))
    lab.run(flow)
    lab.produce(lab.target, topic, records(20, mark="b"))
    lab.run(backward(flow))
    lab.produce(lab.source, topic, records(20, mark="c"))
    lab.run(flow)
    lab.produce(lab.target, topic, records(5, mark="d"))

    (here,) = read_all(lab.source.bootstrap, topic)
    (there,) = read_all(lab.target.bootstrap, topic)
    offsets = [record.offset for record in here]
    groups = {offset: new_group() for offset in (0, offsets[10], offsets[19], offsets[20], offsets[30], offsets[-10], offsets[-1] + 1)}
    for offset, group in groups.items():
        commit(lab.source, group, {(topic, 0): offset})
    found = translated_groups(flow, groups.values())
    for offset, group in groups.items():
        (entry,) = said(found, group).values()
        assert entry.translation is not None
        unread = [record.value for record in here if record.offset >= offset]
        ahead = [record.value for record in there if record.offset >= entry.translation.image]
        assert set(unread) <= set(ahead)
        assert {value for value in ahead if value not in {record.value for record in here}} == {f"d{n}".encode() for n in range(5)}
        if entry.translation.exact:
            assert ahead[: len(unread)] == unread
    exact = [offset for offset, group in groups.items() if (entry := said(found, group)[topic, 0]).translation and entry.translation.exact]
    assert exact
