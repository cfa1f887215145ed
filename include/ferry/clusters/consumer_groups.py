"""Consumer groups of one cluster: which there are, what they have committed, who is in them, and writing their offsets.

Over the raw data path, not over librdkafka (see offset_fetch.py), for many groups at once: one request holds the groups of one coordinator.
One group's trouble is that group's error value and never keeps the others. Writing uses generation -1 and no member id: then the broker
itself refuses a group that has members (ClassicGroup.validateOffsetCommit, ConsumerGroup.validateOffsetCommit), whatever was seen before.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer.group import OffsetCommitRequest

from ferry.clusters.answers import (
    ASKED_AGAIN,
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    Action,
    RequestKind,
)
from ferry.clusters.connections import ClusterConnection, EventLoop, RequestLost, RequestNotSent
from ferry.clusters.failures import granting
from ferry.clusters.group_model import CommittedOffset, GroupDescription, GroupListing, GroupMember, GroupState, GroupType
from ferry.clusters.group_requests import (
    ANSWER_MILLISECONDS,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    PATIENCE_SECONDS,
    Answer,
    GroupQuestion,
    GroupRequests,
)
from ferry.clusters.messages import ConsumerGroupDescribeRequest
from ferry.clusters.offset_batches import OffsetBatches
from ferry.clusters.offset_fetch import GroupAnswer, fetch_offsets
from ferry.clusters.partitions import TopicPartition, by_topic
from ferry.clusters.pauses import doubling
from ferry.config import ClientRole, Cluster
from ferry.errors import ClusterUnreachable, FerryError

T = TypeVar("T")

# Offsets of so many groups fit a response that decodes within a fraction of a second, even with hundreds of partitions each.
GROUPS_A_FETCH = 100
GROUPS_A_DESCRIPTION = 100
# An offset commit is about one group, and the broker answers it when its log has taken it: several connections let it take several at once.
COMMIT_CONNECTIONS = 4
COMMITS_WORTH_CONNECTIONS = 16
# By topic name; version 10 goes by topic id.
OFFSET_COMMIT_VERSION = 9

# Nobody has a topic of that name.
NO_TOPIC = "ferry-asks-whether-it-may"

GroupOffsets = dict[TopicPartition, CommittedOffset]
# Error codes, as ferry.clusters.answers.OFFSET_COMMIT explains them.
Refusals = dict[TopicPartition, int]


class ConsumerGroups:
    """The groups of one cluster; a context manager around its connections. Not for use by several threads.

    `to_write`: whoever may not describe a group is told to get what writing its offsets takes, which describing needs less than.
    """

    def __init__(self, cluster: Cluster, *, to_write: bool = False) -> None:
        self._cluster = cluster
        self._to_look = "Read on group" if to_write else "Describe on group"
        self._loop: EventLoop
        self._connections: list[ClusterConnection] = []
        self._coordinators: dict[str, int] = {}

    def __enter__(self) -> ConsumerGroups:
        self._loop = EventLoop()
        try:
            self._loop.run(self._connect, 1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *details: object) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self._loop.close()

    def granting(self, right: str) -> str:
        """What an administrator of this cluster is to do; `right` as `Read on topic orders`."""
        return granting(self._cluster, right)

    def list(self) -> tuple[GroupListing, ...]:
        """Every group that the user may describe, of all brokers and types, by name. ClusterUnreachable when a broker does not say.

        ListGroups never refuses: groups without Describe are left out by the broker.
        """
        return self._loop.run(self._list)

    def offsets(self, groups: Iterable[str], *, stable: bool = True) -> dict[str, GroupOffsets | FerryError]:
        """What each group has committed; a group that does not exist has nothing. Partitions that the user may not describe are left out.

        `stable`: a group with offset commits of an undecided transaction is asked again for ten seconds, then it is that group's error;
        otherwise the offsets before that transaction are taken. A partition whose first commit ever is undecided is left out by the broker.
        """
        ask = _bound(self._fetch, stable)
        return self._each(GroupQuestion("reading the offsets of", OFFSET_FETCH, self._to_look, ask, GROUPS_A_FETCH), groups)

    def describe(self, groups: Iterable[str]) -> dict[str, GroupDescription | FerryError]:
        """The state and the members of each classic or consumer group; anything else, share groups too, is DEAD here."""
        classic = GroupQuestion[GroupDescription](
            "describing", DESCRIBE_GROUPS, self._to_look, self._describe_classic, GROUPS_A_DESCRIPTION
        )
        found = self._each(classic, groups)
        absent = [group for group, entry in found.items() if isinstance(entry, GroupDescription) and not entry.exists]
        if absent:
            newer = GroupQuestion[GroupDescription](
                "describing", CONSUMER_GROUP_DESCRIBE, self._to_look, self._describe_consumer, GROUPS_A_DESCRIPTION
            )
            described = self._each(newer, absent)
            found.update(described)
        return found

    def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> Refusals:
        """Write offsets of a group without members; what was refused, as Kafka's error codes by partition. See commit_all."""
        outcome = self.commit_all({group: offsets})[group]
        if isinstance(outcome, FerryError):
            raise outcome
        return outcome

    def commit_all(self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]) -> dict[str, Refusals | FerryError]:
        """Write offsets of many groups without members; by group what was refused, as Kafka's error codes by partition.

        A group that has members is refused as a whole: UNKNOWN_MEMBER_ID (25) at every partition. More offsets than a broker stores at once
        are written in several requests, and refused from where the group got members. A commit whose answer is lost is not sent again,
        because somebody may have moved the group since: GroupFailed, and reading it back tells.
        """
        if len(offsets) >= COMMITS_WORTH_CONNECTIONS:
            self._loop.run(self._connect, COMMIT_CONNECTIONS)
        question = GroupQuestion(
            "writing the offsets of", OFFSET_COMMIT, "Read on group", _bound(self._commit, offsets), 1, repeatable=False
        )
        return self._each(question, offsets)

    def refused(self, groups: Iterable[str]) -> dict[str, FerryError]:
        """Groups whose offsets the user may not write; nothing is written.

        Asked by a commit for a topic that does not exist: a broker judges the group first, and such a commit never gets to its coordinator.
        """
        asked = {group: {TopicPartition(NO_TOPIC, 0): CommittedOffset(0)} for group in groups}
        return {group: answer for group, answer in self.commit_all(asked).items() if isinstance(answer, FerryError)}

    def _each(self, question: GroupQuestion[T], groups: Iterable[str]) -> dict[str, T | FerryError]:
        # A read shares one connection: its requests hold many groups.
        connections = self._connections if question.groups_a_request == 1 else self._connections[:1]
        return self._loop.run(GroupRequests(self._loop, connections, self._coordinators).each, question, groups)

    async def _connect(self, count: int) -> None:
        while len(self._connections) < count:
            connection = ClusterConnection(self._loop, self._cluster, ClientRole.ADMIN)
            self._connections.append(connection)
            await connection.open()

    async def _list(self) -> tuple[GroupListing, ...]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        pauses = doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            try:
                return await self._list_once()
            except (RequestNotSent, RequestLost) as problem:
                if time.monotonic() > deadline:
                    raise ClusterUnreachable(f"cluster {self._cluster.alias}: listing groups failed: {problem}") from problem
            await self._loop.sleep(next(pauses))

    async def _list_once(self) -> tuple[GroupListing, ...]:
        connection = self._connections[0]
        await connection.refresh_brokers()
        found: dict[str, GroupListing] = {}
        for broker in connection.brokers():
            answer = await connection.send(ListGroupsRequest(states_filter=[], types_filter=[]), broker, ANSWER_MILLISECONDS)
            if LIST_GROUPS.action(answer.error_code) is not Action.GO_ON:
                raise RequestNotSent(f"broker {broker}: {LIST_GROUPS.told(answer.error_code)}")
            for entry in answer.groups:
                kind = (entry.group_type or GroupType.CLASSIC).lower()
                found[entry.group_id] = GroupListing(entry.group_id, kind, entry.protocol_type, entry.group_state or "")
        return tuple(found[group] for group in sorted(found))

    async def _fetch(
        self, stable: bool, connection: ClusterConnection, node: int, groups: Sequence[str]
    ) -> dict[str, Answer[GroupOffsets]]:
        found = await fetch_offsets(connection, node, groups, stable=stable, milliseconds=ANSWER_MILLISECONDS)
        return {group: _offsets(answer) for group, answer in found.items()}

    async def _describe_classic(
        self, connection: ClusterConnection, node: int, groups: Sequence[str]
    ) -> dict[str, Answer[GroupDescription]]:
        answer = await connection.send(
            DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False), node, ANSWER_MILLISECONDS
        )
        return {entry.group_id: _description(entry, GroupType.CLASSIC, DESCRIBE_GROUPS) for entry in answer.groups}

    async def _describe_consumer(
        self, connection: ClusterConnection, node: int, groups: Sequence[str]
    ) -> dict[str, Answer[GroupDescription]]:
        request = ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=False)
        try:
            answer = await connection.submit(request, node, ANSWER_MILLISECONDS)
        except kafka_errors.IncompatibleBrokerVersion:  # it has no such groups
            return {group: (0, GroupDescription(group, GroupState.DEAD, "")) for group in groups}
        except kafka_errors.KafkaError as problem:
            raise connection.classified(problem) from problem
        return {entry.group_id: _description(entry, GroupType.CONSUMER, CONSUMER_GROUP_DESCRIBE) for entry in answer.groups}

    async def _commit(
        self,
        offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        connection: ClusterConnection,
        node: int,
        groups: Sequence[str],
    ) -> dict[str, Answer[Refusals]]:
        (group,) = groups
        refusals: Refusals = {}
        batches = OffsetBatches(group, offsets[group], attrgetter("metadata"))
        while batch := batches.take():
            answer = await connection.send(_commit_request(group, batch), node, ANSWER_MILLISECONDS)
            codes = {
                TopicPartition(topic.name, part.partition_index): part.error_code for topic in answer.topics for part in topic.partitions
            }
            # What concerns the group is said of every partition that the broker did not refuse by itself: none was written.
            whole = next((code for code in codes.values() if _of_the_group(code)), 0)
            if batches.refused(batch, OFFSET_COMMIT.gravest(codes.values())):
                continue
            if whole:
                return {group: (whole, None)}
            batches.stored(batch)
            refusals.update({key: code for key, code in codes.items() if code})
        return {group: (0, refusals)}


def _bound(method: Callable[..., Awaitable[Any]], first: Any) -> Callable[..., Awaitable[Any]]:
    async def ask(*arguments: Any) -> Any:
        return await method(first, *arguments)

    return ask


def _offsets(answer: GroupAnswer) -> Answer[GroupOffsets]:
    worst = OFFSET_FETCH.gravest([answer.code, *(code for code, _ in answer.partitions.values())])
    if OFFSET_FETCH.action(worst) not in {Action.GO_ON, Action.NOTHING}:
        return worst, None
    return 0, {key: committed for key, (code, committed) in answer.partitions.items() if code == 0}


def _of_the_group(code: int) -> bool:
    action, told, _ = OFFSET_COMMIT.meaning(code)
    return action in {*ASKED_AGAIN, Action.UNKNOWN} or "{group}" in told


def _description(entry: Any, kind: GroupType, asked: RequestKind) -> Answer[GroupDescription]:
    action = asked.action(entry.error_code)
    if action is Action.NOTHING or (action is Action.GO_ON and entry.group_state in {GroupState.DEAD, ""}):
        return 0, GroupDescription(entry.group_id, GroupState.DEAD, "")
    if action is not Action.GO_ON:
        return entry.error_code, None
    members = tuple(GroupMember(member.member_id, member.client_id, member.client_host) for member in entry.members)
    return 0, GroupDescription(entry.group_id, entry.group_state, kind, members)


def _commit_request(group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> OffsetCommitRequest:
    topic_type = OffsetCommitRequest.OffsetCommitRequestTopic

    def partition(number: int, committed: CommittedOffset) -> Any:
        return topic_type.OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            committed_metadata=committed.metadata,
        )

    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[
            topic_type(name=topic, partitions=[partition(number, offsets[TopicPartition(topic, number)]) for number in numbers])
            for topic, numbers in by_topic(offsets).items()
        ],
        max_version=OFFSET_COMMIT_VERSION,
    )
