"""Groups of a simulated cluster: commits, pending offsets, members, and what is shown of them."""

from __future__ import annotations

import pytest
from tests.simulation.asker import Asker
from tests.simulation.asks import CommitInTransaction, End, Init
from tests.simulation.asks_of_admins import Commit, DeleteGroups, DescribeGroups, ListGroups, Offsets
from tests.simulation.codes import Code
from tests.simulation.groups import Member

from ferry.clusters.groups.messages import ConsumerGroupDescribeRequest

pytestmark = pytest.mark.unit


@pytest.fixture
def ask() -> Asker:
    asker = Asker()
    asker.memory.topic_ids["t"] = asker.cluster.create_topic("t", 2).topic_id
    for kind in (0, 1):
        asker.cluster.state.coordinator(kind, "")
    return asker


def _offset(ask: Asker, *, stable: bool = True, partition: int = 0) -> tuple[int, int]:
    [part] = ask(Offsets("g", "t", (partition,), stable=stable)).groups[0].topics[0].partitions
    return part.error_code, part.committed_offset


def _code(answer: object) -> int:
    return int(answer.topics[0].partitions[0].error_code)  # type: ignore[attr-defined]


def test_commits(ask: Asker) -> None:
    assert _offset(ask) == (0, -1)
    assert ask(Offsets("g")).groups[0].topics == []
    assert _code(ask(Commit("g", "t", offset=3, metadata="m"))) == 0
    assert _offset(ask) == (0, 3)
    assert [part.metadata for part in ask(Offsets("g")).groups[0].topics[0].partitions] == ["m"]
    assert _code(ask(Commit("g", "missing", offset=3))) == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert _code(ask(Commit("g", "t", offset=3, metadata="m" * 4_097))) == Code.OFFSET_METADATA_TOO_LARGE


def test_a_group_with_members_refuses_commits_of_others(ask: Asker) -> None:
    ask(Commit("g", "t", offset=3))
    ask.cluster.groups.groups["g"].members.append(Member("m"))
    assert _code(ask(Commit("g", "t", offset=4))) == Code.UNKNOWN_MEMBER_ID
    assert _code(ask(Commit("g", "t", offset=5, member="m"))) == 0
    # A transaction that names no member is not checked.
    ask(Init("x"))
    assert _code(ask(CommitInTransaction("x", "g", "t", offset=6))) == 0
    assert ask(DeleteGroups("g")).results[0].error_code == Code.NON_EMPTY_GROUP
    described = ask(DescribeGroups("g")).groups[0]
    assert (described.group_state, [member.member_id for member in described.members]) == ("Stable", ["m"])


def test_pending_offsets(ask: Asker) -> None:
    ask(Init("x"))
    ask(Commit("g", "t", offset=1))
    assert _code(ask(CommitInTransaction("x", "g", "t", offset=2))) == 0
    assert _offset(ask) == (Code.UNSTABLE_OFFSET_COMMIT, -1)
    assert _offset(ask, stable=False) == (0, 1)
    assert _offset(ask, partition=1) == (0, -1)
    ask(End("x"))
    ask.cluster.settle()
    assert _offset(ask) == (0, 2)


def test_a_plain_commit_that_comes_later_wins(ask: Asker) -> None:
    ask(Init("x"))
    ask(CommitInTransaction("x", "g", "t", offset=2))
    ask(Commit("g", "t", offset=1))
    ask(End("x"))
    ask.cluster.settle()
    assert _offset(ask) == (0, 1)


def test_a_group_that_is_deleted_in_a_transaction(ask: Asker) -> None:
    ask(Init("x"))
    ask(CommitInTransaction("x", "g", "t", offset=2))
    assert ask(DeleteGroups("g")).results[0].error_code == 0
    assert ask(End("x")).error_code == 0
    ask.cluster.settle()
    assert _offset(ask) == (0, -1)


def test_fenced_offsets(ask: Asker) -> None:
    ask(Init("x"))
    ask(CommitInTransaction("x", "g", "t", offset=2))
    ask(End("x"))
    ask.cluster.settle()
    assert _code(ask(CommitInTransaction("x", "g", "t", offset=9, epochs=-1))) == Code.INVALID_PRODUCER_EPOCH
    assert _code(ask(CommitInTransaction("x", "g", "t", offset=9, epochs=-1, version=4))) == Code.INVALID_PRODUCER_EPOCH
    # In the older protocol the group must be in the transaction.
    assert _code(ask(CommitInTransaction("x", "g", "t", offset=9, version=4))) == Code.TRANSACTION_ABORTABLE
    assert _code(ask(CommitInTransaction("y", "g", "t", offset=9))) == Code.INVALID_PRODUCER_ID_MAPPING


def test_offsets_of_a_deleted_topic_go(ask: Asker) -> None:
    ask(Commit("g", "t", offset=3))
    ask.cluster.administration.delete(ask.cluster.topic("t"))
    assert len(ask(Offsets("g")).groups[0].topics) == 1
    ask.cluster.settle()
    assert ask(Offsets("g")).groups[0].topics == []


def test_what_is_shown(ask: Asker) -> None:
    assert ask(DescribeGroups("g")).groups[0].error_code == Code.GROUP_ID_NOT_FOUND
    assert ask(ListGroups()).groups == []
    ask(Commit("g", "t", offset=3))
    [listed] = ask(ListGroups()).groups
    assert (listed.group_id, listed.group_state, listed.group_type, listed.protocol_type) == ("g", "Empty", "classic", "")
    described = ask(DescribeGroups("g")).groups[0]
    assert (described.error_code, described.group_state) == (0, "Empty")
    [consumer] = ask.cluster.submit(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).answer.groups
    assert consumer.error_code == Code.GROUP_ID_NOT_FOUND
    assert ask(DeleteGroups("g")).results[0].error_code == 0
    assert ask(DeleteGroups("g")).results[0].error_code == Code.GROUP_ID_NOT_FOUND


def test_a_coordinator_that_moves() -> None:
    ask = Asker(brokers=(1, 2), state_replicas=2)
    ask.cluster.create_topic("t")
    ask.cluster.state.coordinator(0, "")
    place = ask.cluster.state.state_partition(0, "g")
    assert place is not None
    now = place.led.leader
    assert _code(ask(Commit("g", "t", offset=3), now)) == 0
    assert _code(ask(Commit("g", "t", offset=4), 3 - now)) == Code.NOT_COORDINATOR
    ask.cluster.elect(place, 3 - now)
    assert ask(Offsets("g"), 3 - now).groups[0].error_code == Code.COORDINATOR_LOAD_IN_PROGRESS
    ask.cluster.settle()
    assert ask(Offsets("g"), 3 - now).groups[0].topics[0].partitions[0].committed_offset == 3
