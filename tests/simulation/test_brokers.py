"""Brokers of a simulated cluster: replication, elections, brokers that are gone or cut off, requests that wait, quotas."""

from __future__ import annotations

from typing import Any

import kafka.errors as kafka_errors
import pytest
from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ListGroupsRequest,
)
from kafka.protocol.admin import DescribeUserScramCredentialsRequest as NotKnown
from tests.simulation.asker import Asker, assert_as_decoded
from tests.simulation.asks import End, EpochEnd, Fetch, Init, ListOffsets, Produce
from tests.simulation.asks_of_admins import ApiVersions, CreateTopics, FindCoordinators, Metadata
from tests.simulation.codes import Code
from tests.simulation.partition import Partition
from tests.simulation.steps import StepKind

pytestmark = pytest.mark.unit


@pytest.fixture
def ask() -> Asker:
    asker = Asker(brokers=(1, 2, 3))
    topic = asker.cluster.create_topic("t", replicas=3, min_insync_replicas="1")
    asker.memory.topic_ids["t"] = topic.topic_id
    asker.cluster.elect(topic.partitions[0], 1)
    return asker


@pytest.fixture
def partition(ask: Asker) -> Partition:
    return ask.cluster.topic("t").partitions[0]


def _part(answer: Any) -> Any:
    return answer.responses[0].partitions[0]


def _code(answer: Any) -> int:
    return int(answer.partitions[0].error_code)


def test_all_replicas_have_what_was_acknowledged(ask: Asker, partition: Partition) -> None:
    assert _code(ask(Produce("t"))) == 0
    assert {log.end for log in partition.logs.values()} == {log.high_watermark for log in partition.logs.values()} == {1}
    assert _code(ask(Produce("t"), 2)) == Code.NOT_LEADER_OR_FOLLOWER
    ask.cluster.elect(partition, 2)
    assert _code(ask(Produce("t"), 2)) == 0
    assert _part(ask(Fetch("t", epoch=partition.led.epoch), 2)).high_watermark == 2


def test_a_record_waits_for_the_replicas(ask: Asker, partition: Partition) -> None:
    partition.waiting.add(3)
    reply = ask.begin(Produce("t"))
    assert not reply.ended
    assert _part(ask(Fetch("t"))).records == b""
    partition.waiting.discard(3)
    partition.replicate()
    ask.cluster.state.look_at_parked()
    assert [step.kind for step in ask.cluster.steps] == [StepKind.ANSWER]
    ask.cluster.settle()
    assert _code(reply.answer) == 0
    assert _part(ask(Fetch("t"))).records


def test_a_record_that_the_replicas_do_not_get_in_time(ask: Asker, partition: Partition) -> None:
    partition.waiting.add(3)
    reply = ask.begin(Produce("t"))
    ask.cluster.advance(ask.cluster.now + 20_000)
    ask.cluster.settle()
    assert reply.answer.partitions[0][2:4] == (Code.REQUEST_TIMED_OUT, 0)
    # The log has it: the same batch again would be recognised, and one without a producer id is written twice.
    assert partition.log.end == 1


def test_a_leader_that_is_replaced_meanwhile(ask: Asker, partition: Partition) -> None:
    partition.waiting.update((2, 3))
    reply = ask.begin(Produce("t"))
    ask.cluster.elect(partition, 2)
    ask.cluster.settle()
    assert _code(reply.answer) == Code.NOT_LEADER_OR_FOLLOWER
    assert partition.log.end == 0


def test_an_unclean_election_loses_records(ask: Asker, partition: Partition) -> None:
    ask(Produce("t"))
    partition.waiting.add(3)
    partition.leave_sync(3)
    ask(Produce("t", values=(b"lost",)))
    ask.cluster.elect(partition, 3)
    assert (partition.log.end, partition.led.in_sync) == (1, (3,))
    ask(Produce("t", values=(b"new",)), 3)
    for node in (1, 2):
        partition.catch_up(node)
    assert [log.batches for log in partition.logs.values()] == [partition.log.batches] * 3
    assert partition.logs[1].high_watermark == 2
    epoch = partition.led.epoch
    told = ask(EpochEnd("t", asked=epoch - 1, epoch=epoch), 3).topics[0].partitions[0]
    assert (told.leader_epoch, told.end_offset) == (epoch - 1, 1)


def test_a_new_leader_does_not_know_the_end_yet(ask: Asker, partition: Partition) -> None:
    partition.waiting.add(3)
    ask.begin(Produce("t"))
    ask.cluster.elect(partition, 2)
    assert ask(ListOffsets("t"), 2).topics[0].partitions[0].error_code == Code.OFFSET_NOT_AVAILABLE
    assert ask(ListOffsets("t", at=-2), 2).topics[0].partitions[0].error_code == 0


def test_leader_epochs_of_clients(ask: Asker, partition: Partition) -> None:
    epoch = partition.led.epoch
    assert _part(ask(Fetch("t", epoch=epoch - 1))).error_code == Code.FENCED_LEADER_EPOCH
    assert _part(ask(Fetch("t", epoch=epoch + 1))).error_code == Code.UNKNOWN_LEADER_EPOCH
    assert ask(ListOffsets("t", epoch=epoch - 1)).topics[0].partitions[0].error_code == Code.FENCED_LEADER_EPOCH


def test_a_follower_answers_fetches_of_newer_versions(ask: Asker) -> None:
    ask(Produce("t"))
    assert _part(ask(Fetch("t"), 2)).records
    assert _part(ask(Fetch("t", version=10), 2)).error_code == Code.NOT_LEADER_OR_FOLLOWER
    assert ask(ListOffsets("t"), 2).topics[0].partitions[0].error_code == Code.NOT_LEADER_OR_FOLLOWER


def test_a_fetch_waits(ask: Asker) -> None:
    replies = [ask.begin(Fetch("t", wait=500)) for _ in range(2)]
    assert not any(reply.ended for reply in replies)
    ask(Produce("t"))
    ask.cluster.settle()
    assert all(_part(reply.answer).records for reply in replies)
    # As long as it may, if nothing comes; and for as many bytes as it wants.
    reply = ask.begin(Fetch("t", offset=1, wait=500))
    ask.cluster.advance(ask.cluster.now + 499)
    assert not len(ask.cluster.steps)
    ask.cluster.advance(ask.cluster.now + 1)
    ask.cluster.settle()
    assert _part(reply.answer).records == b""
    reply = ask.begin(Fetch("t", least=1_000, wait=500))
    assert not reply.ended
    # An error is answered at once, also one that comes while it waits.
    assert _part(ask(Fetch("t", offset=9, wait=500))).error_code == Code.OFFSET_OUT_OF_RANGE
    ask.cluster.administration.delete(ask.cluster.topic("t"))
    ask.cluster.state.look_at_parked()
    ask.cluster.settle()
    assert _part(reply.answer).error_code == Code.UNKNOWN_TOPIC_OR_PARTITION


def test_a_broker_that_is_killed(ask: Asker, partition: Partition) -> None:
    partition.waiting.add(3)
    waiting = ask.begin(Produce("t"))
    ask.cluster.kill(1)
    assert waiting.lost
    assert ask.begin(Fetch("t")).lost
    # The others learn of it in a step.
    assert partition.led.leader == 1
    ask.cluster.settle()
    assert (partition.led.leader, partition.led.in_sync) == (2, (2, 3))
    [topic] = ask(Metadata(("t",)), 2).topics
    assert (topic.partitions[0].leader_id, topic.partitions[0].offline_replicas) == (2, [1])
    assert [broker.node_id for broker in ask(Metadata(()), 2).brokers] == [2, 3]
    ask.cluster.start(1)
    ask.cluster.settle()
    assert (partition.led.leader, set(partition.led.in_sync)) == (2, {1, 2, 3})
    assert partition.logs[1].batches == partition.log.batches


def test_the_only_replica_comes_back_in_another_epoch(ask: Asker) -> None:
    topic = ask.cluster.create_topic("one", replicas=1)
    partition = topic.partitions[0]
    node, epoch = partition.led.leader, partition.led.epoch
    ask.cluster.kill(node)
    ask.cluster.settle()
    assert partition.led.leader == -1
    other = 1 if node != 1 else 2
    assert ask(Metadata(("one",)), other).topics[0].partitions[0].error_code == Code.LEADER_NOT_AVAILABLE
    ask.cluster.start(node)
    ask.cluster.settle()
    assert (partition.led.leader, partition.led.epoch) == (node, epoch + 2)


def test_a_topic_may_have_replicas_on_a_broker_that_is_down(ask: Asker) -> None:
    ask.cluster.kill(2)
    ask.cluster.settle()
    assert ask(CreateTopics("new", 2, replicas=3)).topics[0].error_code == 0
    parts = ask.cluster.topic("new").partitions
    assert [(part.replicas[-1], set(part.led.in_sync)) for part in parts] == [(2, {1, 3}), (2, {1, 3})]
    ask.cluster.start(2)
    ask.cluster.settle()
    assert all(set(part.led.in_sync) == {1, 2, 3} for part in parts)
    assert ask(CreateTopics("wide", replicas=4)).topics[0].error_code == Code.INVALID_REPLICATION_FACTOR


def test_a_broker_that_is_cut_off(ask: Asker, partition: Partition) -> None:
    ask(Produce("t"))
    ask.cluster.cut_off(1)
    ask.cluster.settle()
    assert partition.led.leader == 2
    # It still takes itself for the leader, and answers what it has; but what it appends reaches nobody.
    assert ask(Metadata(("t",)), 1).topics[0].partitions[0].leader_id == 1
    assert _part(ask(Fetch("t"), 1)).high_watermark == 1
    reply = ask.begin(Produce("t", values=(b"lost",)), 1)
    assert not reply.ended
    ask.cluster.advance(ask.cluster.now + 20_000)
    ask.cluster.settle()
    assert _code(reply.answer) == Code.REQUEST_TIMED_OUT
    assert _code(ask(Produce("t", values=(b"kept",)), 2)) == 0
    ask.cluster.join_again(1)
    ask.cluster.settle()
    assert partition.logs[1].batches == partition.log.batches
    assert ask(Metadata(("t",)), 1).topics[0].partitions[0].leader_id == 2


def test_a_quota(ask: Asker) -> None:
    ask.cluster.state.brokers[1].throttle = 250
    assert ask(Produce("t")).throttle_time_ms == 250
    assert ask(Fetch("t")).throttle_time_ms == 250
    assert ask(ListOffsets("t")).throttle_time_ms == 250
    assert ask(ListOffsets("t"), 2).throttle_time_ms == 0


def test_a_disk_that_is_full(ask: Asker, partition: Partition) -> None:
    assert _code(ask(Produce("t"))) == 0
    ask.cluster.fail_disk(1, partition)
    assert _code(ask(Produce("t"))) == Code.KAFKA_STORAGE_ERROR
    assert ask(ListOffsets("t")).topics[0].partitions[0].error_code == Code.KAFKA_STORAGE_ERROR
    ask.cluster.settle()
    told = ask(Metadata(("t",))).topics[0].partitions[0]
    assert (told.leader_id, told.leader_epoch, told.offline_replicas, told.isr_nodes) == (2, 2, [1], [2, 3])
    assert _code(ask(Produce("t", values=(b"later",)), 2)) == 0
    assert _code(ask(Produce("t"))) == Code.KAFKA_STORAGE_ERROR
    ask.cluster.kill(1)
    ask.cluster.start(1)
    ask.cluster.settle()
    assert partition.logs[1].batches == partition.log.batches
    assert _code(ask(Produce("t"))) == Code.NOT_LEADER_OR_FOLLOWER


def test_a_full_disk_with_the_only_replica() -> None:
    ask = Asker(brokers=(1, 2))
    topic = ask.cluster.create_topic("t")
    ask.memory.topic_ids["t"] = topic.topic_id
    leader = topic.partitions[0].led.leader
    ask.cluster.fail_disk(leader, topic.partitions[0])
    ask.cluster.settle()
    told = ask(Metadata(("t",))).topics[0].partitions[0]
    assert (told.error_code, told.leader_id) == (Code.LEADER_NOT_AVAILABLE, -1)
    ask.cluster.start(leader)
    ask.cluster.settle()
    assert _code(ask(Produce("t"), leader)) == 0


def test_a_full_disk_of_a_coordinator() -> None:
    """It refuses until another broker has read its state; markers wait."""
    ask = Asker(brokers=(1, 2), state_replicas=2, state_partitions=1)
    ask.memory.topic_ids["t"] = ask.cluster.create_topic("t").topic_id
    ask(FindCoordinators(("x",), 1))
    place = ask.cluster.topic("__transaction_state").partitions[0]
    node = place.led.leader
    assert ask(Init("x"), node).error_code == 0
    ask.cluster.fail_disk(node, place)
    assert ask(End("x"), node).error_code == Code.COORDINATOR_NOT_AVAILABLE
    ask.cluster.settle()
    assert ask(Init("x"), node).error_code == Code.NOT_COORDINATOR
    assert ask(Init("x"), 3 - node).error_code == 0


def test_the_first_question_for_a_coordinator_makes_its_topic(ask: Asker) -> None:
    assert [one.error_code for one in ask(FindCoordinators(("a", "b"))).coordinators] == [Code.COORDINATOR_NOT_AVAILABLE, 0]
    found = ask(FindCoordinators(("a", "b"))).coordinators
    assert [one.key for one in found] == ["a", "b"]
    assert all(one.error_code == 0 and one.node_id in {1, 2, 3} for one in found)


def test_what_a_cluster_says_of_itself(ask: Asker) -> None:
    answer = ask(ApiVersions())
    assert [(one.name, one.max_version_level) for one in answer.finalized_features][-1:] == [("transaction.version", 2)]
    topic = DescribeQuorumRequest.TopicData
    asked = topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])
    requests = [
        DescribeClusterRequest(include_cluster_authorized_operations=True),
        DescribeQuorumRequest(topics=[asked]),
        DescribeLogDirsRequest(topics=None),
        DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1),
        ListGroupsRequest(),
    ]
    for request in requests:
        answer = ask.cluster.submit(request, 1).answer
        assert_as_decoded(answer)
    assert ask.cluster.submit(requests[1], 1).answer.topics[0].partitions[0].current_voters[0].last_caught_up_timestamp == ask.cluster.now


def test_what_it_does_not_know_it_does_not_answer(ask: Asker) -> None:
    with pytest.raises(kafka_errors.IncompatibleBrokerVersion):
        ask.cluster.submit(NotKnown(users=None), 1)
