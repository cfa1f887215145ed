"""Consumer groups of a real cluster: listed, read, described, written; compared with librdkafka."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType
from tests.conftest import Lab
from tests.opened import open_groups
from tests.waiting import until
from tools.kafka import SandboxCluster

from ferry.clusters.groups import committed_offsets, consumer_groups, group_requests
from ferry.clusters.groups.group_model import CommittedOffset, GroupDescription, GroupState, GroupType
from ferry.clusters.net.error_codes import CODES
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Cluster, load_config
from ferry.errors import GroupFailed, NotAuthorized

pytestmark = pytest.mark.brokers

TopicFactory = Callable[..., str]
GroupMember = Callable[..., AbstractContextManager[Consumer]]


@pytest.fixture
def cluster(config_file: Callable[..., Path]) -> Cluster:
    return load_config(config_file()).flows[0].target


def name(prefix: str = "g") -> str:
    return f"{prefix}-{secrets.token_hex(4)}"


def committed(cluster: SandboxCluster, group: str, partitions: Sequence[tuple[str, int]]) -> list[int]:
    consumer = Consumer({**cluster.client_settings(), "group.id": group})
    try:
        return [entry.offset for entry in consumer.committed([KafkaPartition(*key) for key in partitions], timeout=10)]
    finally:
        consumer.close()


def test_clients_and_the_reader_see_what_is_written(lab: Lab, cluster: Cluster) -> None:
    topic, group, other = lab.topic(lab.target, partitions=3), name(), name()
    offsets = {
        TopicPartition(topic, 0): CommittedOffset(5, -1, "mark"),
        TopicPartition(topic, 2): CommittedOffset(1 << 40),
    }
    with open_groups(cluster) as groups:
        assert groups.commit(group, offsets) == {}
        assert groups.offsets([group, other]) == {group: offsets, other: {}}
        refused = groups.commit(group, {TopicPartition(topic, 1): CommittedOffset(3), TopicPartition(topic, 9): CommittedOffset(3)})
        assert refused == {(topic, 9): CODES["UNKNOWN_TOPIC_OR_PARTITION"]}
    assert committed(lab.target, group, [(topic, 0), (topic, 1), (topic, 2)]) == [5, 3, 1 << 40]


@pytest.mark.parametrize("kind", [GroupType.CLASSIC, GroupType.CONSUMER])
def test_a_group_through_its_life(kind: GroupType, lab: Lab, cluster: Cluster, group_member: GroupMember) -> None:
    topic, group = lab.topic(lab.target), name(kind)
    wanted = {TopicPartition(topic, 0): CommittedOffset(7)}
    with open_groups(cluster) as groups:
        assert groups.describe([group])[group] == GroupDescription(group, GroupState.DEAD, "")
        with group_member(lab.target, group, topic, **{"group.protocol": kind.value, "client.id": "reader"}) as consumer:
            described = groups.describe([group])[group]
            assert isinstance(described, GroupDescription)
            assert (described.state, described.type, described.active) == ("Stable", kind, True)
            assert [entry.client_id for entry in described.members] == ["reader"]
            assert groups.commit(group, wanted) == {(topic, 0): CODES["UNKNOWN_MEMBER_ID"]}
            assert groups.offsets([group]) == {group: {}}
            consumer.commit(offsets=[KafkaPartition(topic, 0, 4, metadata="own")], asynchronous=False)
        empty = GroupDescription(group, GroupState.EMPTY, kind)
        until(lambda: groups.describe([group])[group] == empty, lambda: groups.describe([group])[group])
        assert groups.offsets([group])[group][TopicPartition(topic, 0)].metadata.rstrip("\0") == "own"  # librdkafka appends a NUL
        assert groups.commit(group, wanted) == {}
        entry = next(entry for entry in groups.list() if entry.group == group)
        assert (entry.type, entry.protocol_type, entry.state) == (kind, "consumer", GroupState.EMPTY)
    assert committed(lab.target, group, [(topic, 0)]) == [7]


def test_a_share_group_is_named_as_one_and_refused(cluster: Cluster, share_group: str, lab: Lab) -> None:
    topic = lab.topic(lab.target)
    with open_groups(cluster) as groups:
        (entry,) = (entry for entry in groups.list() if entry.group == share_group)
        assert (entry.type, entry.protocol_type) == (GroupType.SHARE, "share")
        assert groups.describe([share_group])[share_group] == GroupDescription(share_group, GroupState.DEAD, "")
        assert groups.offsets([share_group])[share_group] == {}
        assert groups.commit(share_group, {TopicPartition(topic, 0): CommittedOffset(1)}) == {(topic, 0): CODES["GROUP_ID_NOT_FOUND"]}


def test_a_group_that_the_user_may_not_see(
    cluster_factory: Callable[..., SandboxCluster], config_file: Callable[..., Path], topic_factory: TopicFactory
) -> None:
    """It is refused alone, by name, with what to grant. The cluster has no groups of KIP-848, and that is no error either."""
    users = {"admin": "secret", "reader": "secret"}
    restricted = cluster_factory(users=users, authorizer=True, features=["group.version=0"])
    topic, seen, hidden, written = topic_factory(restricted), name("seen"), name("hidden"), name("written")
    client = AdminClient(restricted.client_settings())
    grants = [
        (ResourceType.GROUP, seen, AclOperation.DESCRIBE),
        (ResourceType.GROUP, written, AclOperation.READ),
        (ResourceType.TOPIC, topic, AclOperation.READ),
    ]
    bindings = [
        AclBinding(kind, resource, ResourcePatternType.LITERAL, "User:reader", "*", operation, AclPermissionType.ALLOW)
        for kind, resource, operation in grants
    ]
    for future in client.create_acls(bindings).values():
        future.result(30)
    offsets = {TopicPartition(topic, 0): CommittedOffset(1)}
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="secret";'
    settings = ["B.security.protocol = SASL_PLAINTEXT", "B.sasl.mechanism = PLAIN", "B.sasl.jaas.config = " + jaas]
    admin, reader = (
        load_config(config_file(*(line.format(user) for line in settings), target=restricted, name=user)).flows[0].target
        for user in ("admin", "reader")
    )
    with open_groups(admin) as groups:
        assert groups.describe([seen])[seen] == GroupDescription(seen, GroupState.DEAD, "")
        assert groups.commit_all({seen: offsets, hidden: offsets}) == {seen: {}, hidden: {}}
        assert groups.describe([seen])[seen] == GroupDescription(seen, GroupState.EMPTY, GroupType.CLASSIC)
    with open_groups(reader) as groups:
        assert [entry.group for entry in groups.list()] == [seen]
        for found in (groups.offsets([seen, hidden]), groups.describe([seen, hidden])):
            assert isinstance(found[hidden], NotAuthorized)
            assert f"grant Describe on group {hidden}" in str(found[hidden])
            assert not isinstance(found[seen], NotAuthorized)
        with open_groups(reader, to_write=True) as writing:
            for found in (writing.offsets([hidden]), writing.describe([hidden])):
                assert f"grant Read on group {hidden}" in str(found[hidden]), "with Describe alone it would be refused again"
        for group, problem in groups.commit_all({seen: offsets, hidden: offsets}).items():
            assert isinstance(problem, NotAuthorized)
            assert f"group {group}" in str(problem)
        # Asked without writing: who may not, and what to grant.
        refused = groups.refused([seen, hidden, written])
        assert {group: type(problem) for group, problem in refused.items()} == {seen: NotAuthorized, hidden: NotAuthorized}
        assert f"grant Read on group {seen}" in str(refused[seen])
    with open_groups(admin) as groups:
        assert groups.refused([written]) == {}
        assert not groups.describe([written])[written].exists


def test_many_groups_at_once_and_brokers_that_accept_one_group_a_request(
    lab: Lab, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = lab.topic(lab.target)
    wanted = {name(f"many{number}"): {TopicPartition(topic, 0): CommittedOffset(number)} for number in range(150)}
    with open_groups(cluster) as groups:
        assert set(map(str, groups.commit_all(wanted).values())) == {"{}"}
        assert groups.offsets(wanted) == wanted
        assert {entry.group for entry in groups.list()} >= set(wanted)
    monkeypatch.setattr(committed_offsets, "FETCH_VERSION", 7)
    monkeypatch.setattr(group_requests, "FIND_COORDINATOR_VERSION", 3)
    with open_groups(cluster) as groups:
        assert groups.offsets(wanted) == wanted


def test_a_broker_that_hangs_costs_one_time_out(lab: Lab, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (consumer_groups, group_requests):
        monkeypatch.setattr(module, "ANSWER_MILLISECONDS", 1000)
    monkeypatch.setattr(group_requests, "PATIENCE_SECONDS", 0.5)
    topic = lab.topic(lab.target)
    wanted = {name(f"hang{number}"): {TopicPartition(topic, 0): CommittedOffset(number)} for number in range(800)}
    with open_groups(cluster) as groups:
        groups.commit_all(wanted)
        lab.target.pause()
        try:
            began = time.monotonic()
            outcome = groups.commit_all(wanted)
            assert time.monotonic() - began < 50  # eight requests are on their way at once: eight hundred time-outs would take 100 s
            assert set(outcome) == set(wanted)
            assert all(isinstance(entry, GroupFailed) for entry in outcome.values())
            assert {"it is not known whether" in str(entry) for entry in outcome.values()} == {True, False}
        finally:
            lab.target.resume()
        assert groups.offsets(wanted) == wanted


def test_offsets_of_an_open_transaction(lab: Lab, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """One group waits and fails alone; without `stable` the offsets before it count."""
    monkeypatch.setattr(group_requests, "PATIENCE_SECONDS", 0.5)
    topic, group, settled = lab.topic(lab.target), name(), name()
    before = {TopicPartition(topic, 0): CommittedOffset(1)}
    with open_groups(cluster) as groups:
        assert groups.commit_all({group: before, settled: before}) == {group: {}, settled: {}}
        producer = Producer({**lab.target.client_settings(), "transactional.id": name()})
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [KafkaPartition(topic, 0, 2)], Consumer({**lab.target.client_settings(), "group.id": group}).consumer_group_metadata(), 10
        )
        found = groups.offsets([group, settled])
        assert isinstance(found[group], GroupFailed)
        assert "UNSTABLE_OFFSET_COMMIT" in str(found[group])
        assert found[settled] == before
        assert groups.offsets([group], stable=False) == {group: before}
        producer.commit_transaction()
        assert groups.offsets([group]) == {group: {TopicPartition(topic, 0): CommittedOffset(2)}}
