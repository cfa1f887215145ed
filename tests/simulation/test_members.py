"""A group with a member: which requests of others it refuses, on a simulated cluster and on real ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer
from tests.simulation.asker import Asker
from tests.simulation.asks import Ask, CommitInTransaction, Init, Memory
from tests.simulation.asks_of_admins import Commit, CreateTopics, DeleteGroups, DeleteOffsets, FindCoordinators, ListGroups, Offsets
from tests.simulation.codes import Code, codes_of
from tests.simulation.groups import Member
from tests.simulation.real_broker import RealBroker
from tests.waiting import until
from tools.kafka import SandboxCluster

from ferry.config import Flow

TOPIC, OTHER, GROUP = "members", "others", "group"
BEFORE: Sequence[Ask] = [
    CreateTopics(TOPIC),
    CreateTopics(OTHER),
    FindCoordinators((GROUP,)),
    FindCoordinators(("id",), 1),
    Init("id"),
    Commit(GROUP, OTHER, offset=1),
]
# Each with the codes of its answer.
ASKED: Sequence[tuple[Ask, set[int]]] = [
    (Commit(GROUP, TOPIC, offset=1), {Code.UNKNOWN_MEMBER_ID}),
    (Commit(GROUP, TOPIC, offset=1, member="who"), {Code.UNKNOWN_MEMBER_ID}),
    (DeleteGroups(GROUP), {Code.NON_EMPTY_GROUP}),
    (DeleteOffsets(GROUP, TOPIC), {Code.NONE, Code.GROUP_SUBSCRIBED_TO_TOPIC}),
    (DeleteOffsets(GROUP, OTHER), {Code.NONE}),
    (Offsets(GROUP, OTHER), {Code.NONE}),
    (ListGroups(), {Code.NONE}),
]
# A transaction that names no member is not checked; since KIP-890 the group must be in it, if the request does not add it.
IN_TRANSACTION = CommitInTransaction("id", GROUP, TOPIC, offset=3)


@pytest.mark.unit
def test_a_group_with_a_member_refuses_others() -> None:
    ask = Asker()
    for one in [*BEFORE[:4], *BEFORE[2:]]:
        ask(one)
    ask.cluster.groups.get(GROUP).members.append(Member("m", topics=frozenset({TOPIC})))
    assert [codes_of(ask(one)) for one, _ in ASKED] == [codes for _, codes in ASKED]
    assert codes_of(ask(IN_TRANSACTION)) == {Code.NONE}
    [listed] = ask(ListGroups()).groups
    assert (listed.group_state, listed.protocol_type) == ("Stable", "consumer")


@pytest.mark.brokers
@pytest.mark.long
@pytest.mark.parametrize("release", ["2.8.2", "3.9.1", "4.3.1", "4.4.0"])
def test_a_real_group_with_a_member_refuses_the_same(
    release: str, cluster_factory: Callable[..., SandboxCluster], flow_factory: Callable[..., Flow]
) -> None:
    cluster = cluster_factory(version=release)
    real = RealBroker(flow_factory("A->B.topics = x", source=SimpleNamespace(bootstrap="127.0.0.1:1"), target=cluster))
    memory = Memory(int(time.time() * 1_000))
    for one in BEFORE:
        real.asked(one, memory)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, "enable.auto.commit": False})
    consumer.subscribe([TOPIC])

    def joined() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    until(joined)
    told = [codes_of(real.ask(one, one.request(memory), lambda answer: codes_of(answer) == codes)) for one, codes in ASKED]  # noqa: B023
    assert told == [codes for _, codes in ASKED]
    if release >= "4":
        assert codes_of(real.asked(IN_TRANSACTION, memory)) == {Code.NONE}
    [listed] = real.asked(ListGroups(), memory).groups
    assert (listed.group_state, listed.protocol_type) == ("Stable", "consumer")
    consumer.close()
    real.close()
