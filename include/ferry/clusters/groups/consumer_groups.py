"""Consumer groups of one cluster: lists and describes them, and reads and writes their committed offsets.

It uses the raw data path, not librdkafka (see committed_offsets.py), and asks about many groups at once: one request holds the groups of
one coordinator. A problem of one group becomes the result of that group and does not affect others. A commit uses generation -1 and no
member id. So the broker itself refuses the commit if the group has members (ClassicGroup.validateOffsetCommit,
ConsumerGroup.validateOffsetCommit), even if it had none shortly before.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Self, TypeVar

import kafka.errors as kafka_errors
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from ferry import clock
from ferry.clusters.groups.committed_offsets import GroupAnswer, OffsetBatches, commit_request, fetch_request, fetched_offsets
from ferry.clusters.groups.group_model import CommittedOffset, GroupDescription, GroupListing, GroupMember, GroupState, GroupType
from ferry.clusters.groups.group_requests import (
    ANSWER_MILLISECONDS,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    PATIENCE_SECONDS,
    Answer,
    GroupQuestion,
    GroupRequests,
)
from ferry.clusters.groups.messages import ConsumerGroupDescribeRequest
from ferry.clusters.net.backoff import doubling
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import (
    ASKED_AGAIN,
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    Action,
    RequestKind,
)
from ferry.clusters.net.event_loop import together
from ferry.clusters.net.partitions import TopicPartition, partitions_of
from ferry.clusters.net.shared_connection import ConnectedCluster
from ferry.config import ClientRole
from ferry.errors import ClusterUnreachable, FerryError

T = TypeVar("T")

# A response with the offsets of this many groups decodes in a fraction of a second, even with hundreds of partitions each.
GROUPS_A_FETCH = 100
GROUPS_A_DESCRIPTION = 100
# An offset commit is about one group, and is answered when the log is written. Over several connections a broker writes several at once.
COMMIT_CONNECTIONS = 4
COMMITS_WORTH_CONNECTIONS = 16
# Nobody has a topic or group with this name, or with one that ends with it.
MADE_UP = "ferry-asks-whether-it-may"

GroupOffsets = dict[TopicPartition, CommittedOffset]
# Error codes by partition; ferry.clusters.net.error_policy.OFFSET_COMMIT explains them.
Refusals = dict[TopicPartition, int]


class ConsumerGroups:
    """The groups of one cluster; a context manager around its connections. Not for use by several threads.

    `to_write`: the caller will write offsets. So if the user may not describe a group, the message names Read, which includes Describe.
    """

    def __init__(self, cluster: ConnectedCluster, *, to_write: bool = False) -> None:
        self._cluster = cluster
        self._to_look = "Read on group" if to_write else "Describe on group"
        self._scope = ExitStack()
        self._connections: list[ClusterConnection] = []

    def __enter__(self) -> Self:
        self._client = self._scope.enter_context(self._cluster.connected())
        self._connections = [self._client.connection]
        return self

    def __exit__(self, *details: Any) -> None:
        for connection in self._connections[1:]:
            connection.close()
        self._scope.__exit__(*details)

    def list(self) -> tuple[GroupListing, ...]:
        """Every group that the user may describe, of all brokers and types, by name. ClusterUnreachable if a broker does not answer.

        ListGroups never refuses: a broker leaves out groups that the user may not describe.
        """
        return self._client.run(self._list)

    def offsets(self, groups: Iterable[str], *, stable: bool = True) -> dict[str, GroupOffsets | FerryError]:
        """The committed offsets of each group, without partitions that the user may not describe. A group that does not exist has none.

        `stable`: Ferry asks a group with offset commits of an undecided transaction again until its time is over; then that is the group's
        error. Otherwise Ferry reads the offsets before that transaction. A broker leaves out a partition whose first commit is undecided.
        """
        ask = partial(_fetch, stable)
        return self._each(GroupQuestion("reading the offsets of", OFFSET_FETCH, self._to_look, ask, GROUPS_A_FETCH), groups)

    def describe(self, groups: Iterable[str]) -> dict[str, GroupDescription | FerryError]:
        """The state and the members of each classic or consumer group, and the state of each streams group, whose request is another one.
        All others, for example share groups, are DEAD here.
        """
        found = self._each(GroupQuestion("describing", DESCRIBE_GROUPS, self._to_look, _describe_classic, GROUPS_A_DESCRIPTION), groups)
        if absent := _absent(found):
            newer = GroupQuestion("describing", CONSUMER_GROUP_DESCRIBE, self._to_look, _describe_consumer, GROUPS_A_DESCRIPTION)
            described = self._each(newer, absent)
            found |= described
        if absent := _absent(found):
            streams = [entry for entry in self.list() if entry.type == GroupType.STREAMS and entry.group in absent]
            found |= {entry.group: GroupDescription(entry.group, entry.state, entry.type) for entry in streams}
        return found

    def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> Refusals:
        """Write offsets of a group without members; Kafka's error codes by partition that was refused. See commit_all."""
        outcome = self.commit_all({group: offsets})[group]
        if isinstance(outcome, FerryError):
            raise outcome
        return outcome

    def commit_all(self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]) -> dict[str, Refusals | FerryError]:
        """Write offsets of many groups without members; by group Kafka's error codes by partition that was refused.

        A broker refuses a group that has members as a whole: UNKNOWN_MEMBER_ID (25) for every partition. More offsets than a broker stores
        at once need several requests; if the group gets members in between, the broker refuses the rest. Ferry does not repeat a commit
        whose answer is lost, because somebody may have moved the group since: the result is GroupFailed, and the caller can read the
        offsets.
        """
        if len(offsets) >= COMMITS_WORTH_CONNECTIONS:
            self._client.run(self._connect, COMMIT_CONNECTIONS)
        question = GroupQuestion("writing the offsets of", OFFSET_COMMIT, "Read on group", partial(_commit, offsets), 1, repeatable=False)
        return self._each(question, offsets)

    def refused(self, groups: Iterable[str]) -> dict[str, FerryError]:
        """The groups whose offsets the user may not write. Writes nothing.

        Ferry tries to commit an offset of a topic that does not exist. A broker checks the group's right first, and does not pass it on.
        """
        asked = {group: {TopicPartition(MADE_UP, 0): CommittedOffset(0)} for group in groups}
        return {group: answer for group, answer in self.commit_all(asked).items() if isinstance(answer, FerryError)}

    def _each(self, question: GroupQuestion[T], groups: Iterable[str]) -> dict[str, T | FerryError]:
        # A read needs one connection only: its requests hold many groups.
        connections = self._connections if question.groups_a_request == 1 else self._connections[:1]
        return self._client.run(GroupRequests(connections, question).each, groups)

    async def _connect(self, count: int) -> None:
        while len(self._connections) < count:
            connection = ClusterConnection(self._client.loop, self._cluster.cluster, ClientRole.ADMIN)
            self._connections.append(connection)
            await connection.open()

    async def _list(self) -> tuple[GroupListing, ...]:
        deadline = clock.monotonic() + PATIENCE_SECONDS
        pauses = doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            try:
                return await self._list_once()
            except (RequestNotSent, RequestLost) as problem:
                if clock.monotonic() > deadline:
                    raise ClusterUnreachable(f"cluster {self._cluster.alias}: listing groups failed: {problem}") from problem
            await self._client.loop.sleep(next(pauses))

    async def _list_once(self) -> tuple[GroupListing, ...]:
        connection = self._connections[0]
        await connection.refresh_brokers()
        found: dict[str, GroupListing] = {}
        send, brokers = connection.send, connection.brokers()
        answers = await together([self._client.loop.start(send, ListGroupsRequest(), broker, ANSWER_MILLISECONDS) for broker in brokers])
        for broker, answer in zip(brokers, answers, strict=True):
            if LIST_GROUPS.action(answer.error_code) is not Action.GO_ON:
                raise RequestNotSent(f"broker {broker}: {LIST_GROUPS.told(answer.error_code)}")
            for entry in answer.groups:
                kind = (entry.group_type or GroupType.CLASSIC).lower()
                found[entry.group_id] = GroupListing(entry.group_id, kind, entry.protocol_type, entry.group_state or "")
        return tuple(found[group] for group in sorted(found))


def _absent(described: Mapping[str, GroupDescription | FerryError]) -> frozenset[str]:
    return frozenset(group for group, entry in described.items() if isinstance(entry, GroupDescription) and not entry.exists)


async def _fetch(stable: bool, connection: ClusterConnection, node: int, groups: Sequence[str]) -> dict[str, Answer[GroupOffsets]]:
    answer = await connection.send(fetch_request(groups, stable=stable), node, ANSWER_MILLISECONDS)
    return {group: _offsets(found) for group, found in fetched_offsets(answer, groups).items()}


def _offsets(answer: GroupAnswer) -> Answer[GroupOffsets]:
    worst = OFFSET_FETCH.gravest([answer.error_code, *(code for code, _ in answer.partitions.values())])
    if OFFSET_FETCH.action(worst) not in {Action.GO_ON, Action.NOTHING}:
        return worst, None
    return 0, {key: committed for key, (code, committed) in answer.partitions.items() if code == 0}


async def _describe_classic(connection: ClusterConnection, node: int, groups: Sequence[str]) -> dict[str, Answer[GroupDescription]]:
    answer = await connection.send(DescribeGroupsRequest(groups=groups), node, ANSWER_MILLISECONDS)
    return {entry.group_id: _description(entry, GroupType.CLASSIC, DESCRIBE_GROUPS) for entry in answer.groups}


async def _describe_consumer(connection: ClusterConnection, node: int, groups: Sequence[str]) -> dict[str, Answer[GroupDescription]]:
    try:
        answer = await connection.submit(ConsumerGroupDescribeRequest(group_ids=groups), node, ANSWER_MILLISECONDS)
    except kafka_errors.IncompatibleBrokerVersion:  # it has no such groups
        return {group: (0, GroupDescription(group, GroupState.DEAD, "")) for group in groups}
    except kafka_errors.KafkaError as problem:
        raise connection.classified(problem) from problem
    return {entry.group_id: _description(entry, GroupType.CONSUMER, CONSUMER_GROUP_DESCRIBE) for entry in answer.groups}


def _description(entry: Any, kind: GroupType, asked: RequestKind) -> Answer[GroupDescription]:
    action = asked.action(entry.error_code)
    if action is Action.NOTHING or (action is Action.GO_ON and entry.group_state in {GroupState.DEAD, ""}):
        return 0, GroupDescription(entry.group_id, GroupState.DEAD, "")
    if action is not Action.GO_ON:
        return entry.error_code, None
    members = tuple(GroupMember(member.client_id, member.client_host) for member in entry.members)
    return 0, GroupDescription(entry.group_id, entry.group_state, kind, members)


async def _commit(
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]], connection: ClusterConnection, node: int, groups: Sequence[str]
) -> dict[str, Answer[Refusals]]:
    (group,) = groups
    refusals: Refusals = {}
    batches = OffsetBatches(group, offsets[group])
    for batch in batches:
        answer = await connection.send(commit_request(group, batch), node, ANSWER_MILLISECONDS)
        codes = {key: part.error_code for key, part in partitions_of(answer.topics)}
        if batches.refused(OFFSET_COMMIT.gravest(codes.values())):
            continue
        # A broker gives an error of the whole group for every partition that has no error of its own: it wrote none of them.
        meanings = ((code, OFFSET_COMMIT.meaning(code)) for code in codes.values())
        whole = next((code for code, of in meanings if of.action in {*ASKED_AGAIN, Action.UNKNOWN} or "{group}" in of.told), 0)
        if whole:
            return {group: (whole, None)}
        refusals.update({key: code for key, code in codes.items() if code})
    return {group: (0, refusals)}
