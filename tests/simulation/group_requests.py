"""How a broker answers requests about groups (KafkaApis, GroupCoordinatorService, OffsetMetadataManager)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.protocol.admin import DeleteGroupsResponse, DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.consumer.group import OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchResponse
from kafka.protocol.producer import TxnOffsetCommitResponse
from tests.simulation.codes import Code
from tests.simulation.groups import Group, GroupStore, Key, Stored
from tests.simulation.rights import Kind, Operation
from tests.simulation.state import GROUPS, Broker, ClusterState
from tests.simulation.transaction_coordinator import TransactionCoordinators
from tests.simulation.transactions import Pair

from ferry.clusters.groups.messages import ConsumerGroupDescribeResponse

# The first versions: several groups in a fetch; a group that is not there is an error; transactions whose brokers add the group (KIP-890).
SEVERAL_GROUPS, MISSING_IS_ERROR, ADDS_GROUP, KNOWS_ABORTABLE = 8, 6, 5, 4
# With these codes of partitions the coordinator asks whether the transaction may write; the old one before it looks at metadata.
_ASKS = frozenset({Code.NONE})
_ASKS_OLD = _ASKS | {Code.OFFSET_METADATA_TOO_LARGE}
# What is said of all partitions, and of single ones before anything else is looked at.
_DENIED = frozenset({Code.GROUP_AUTHORIZATION_FAILED, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED})
_OF_TOPICS = frozenset({Code.TOPIC_AUTHORIZATION_FAILED, Code.UNKNOWN_TOPIC_OR_PARTITION})
NO_OFFSET = Stored(-1, -1, "", 0)


class GroupRequests:
    """Answers these requests."""

    def __init__(self, state: ClusterState, store: GroupStore, transactions: TransactionCoordinators) -> None:
        self._state, self._store, self._transactions = state, store, transactions

    def _moved(self, broker: Broker, group: str, needs: Operation) -> Code:
        """Why a request about this group is refused."""
        if not self._state.rights.may(needs, Kind.GROUP, group):
            return Code.GROUP_AUTHORIZATION_FAILED
        return self._state.not_coordinator(broker, GROUPS, group)

    def fetch(self, broker: Broker, request: Any, version: int) -> Any:
        if version >= SEVERAL_GROUPS:
            found = [self._fetched(broker, one.group_id, one.topics, request.require_stable, version) for one in request.groups]
            return OffsetFetchResponse(version=version, groups=found)
        code, topics = self._offsets(broker, request.group_id, request.topics, request.require_stable)
        kind = OffsetFetchResponse.OffsetFetchResponseTopic
        listed = _fetched_topics(kind, kind.OffsetFetchResponsePartition, topics, version)
        return OffsetFetchResponse(version=version, topics=listed, error_code=int(code))

    def _fetched(self, broker: Broker, group: str, wanted: Any, stable: bool, version: int) -> Any:
        kind = OffsetFetchResponse.OffsetFetchResponseGroup
        code, topics = self._offsets(broker, group, wanted, stable)
        listed = _fetched_topics(
            kind.OffsetFetchResponseTopics, kind.OffsetFetchResponseTopics.OffsetFetchResponsePartitions, topics, version
        )
        return kind(version=version, group_id=group, topics=listed, error_code=int(code))

    def _offsets(self, broker: Broker, name: str, wanted: Any, stable: bool) -> tuple[Code, dict[Key, tuple[Code, Stored]]]:
        code = self._moved(broker, name, Operation.DESCRIBE)
        if code is not Code.NONE:
            return code, {}
        group = self._store.groups.get(name) or Group(name)
        keys: Iterable[Key] = (
            group.offsets if wanted is None else ((topic.name, part) for topic in wanted for part in topic.partition_indexes)
        )
        found = dict[Key, tuple[Code, Stored]]()
        for key in keys:
            if not self._state.rights.may(Operation.DESCRIBE, Kind.TOPIC, key[0]):
                if wanted is not None:
                    found[key] = Code.TOPIC_AUTHORIZATION_FAILED, NO_OFFSET
            elif stable and group.is_pending(key):
                found[key] = Code.UNSTABLE_OFFSET_COMMIT, NO_OFFSET
            else:
                found[key] = Code.NONE, group.offsets.get(key, NO_OFFSET)
        return code, found

    def commit(self, broker: Broker, request: Any, version: int) -> Any:
        code = self._moved(broker, request.group_id, Operation.READ)
        if code is Code.NONE:
            group = self._group(request.group_id)
            code = group.refuses(request.member_id or "", request.generation_id_or_member_epoch, transactional=False)
        codes = self._codes(broker, request.topics, code)
        if code is Code.NONE:
            group = self._store.get(request.group_id)
            group.offsets.update(self._taken(request.topics, codes))
        kind = OffsetCommitResponse.OffsetCommitResponseTopic
        return OffsetCommitResponse(
            version=version, topics=_coded(kind, kind.OffsetCommitResponsePartition, request.topics, codes, version)
        )

    def commit_in_transaction(self, broker: Broker, request: Any, version: int) -> Any:
        code = self._moved(broker, request.group_id, Operation.READ)
        if not self._state.rights.may(Operation.WRITE, Kind.TRANSACTIONAL_ID, request.transactional_id):
            code = Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        codes = self._codes(broker, request.topics, Code.NONE)
        asks = _ASKS_OLD if self._state.has_old_coordinator else _ASKS
        if code is Code.NONE and not asks.isdisjoint(codes.values()):
            code = self._admitted(request, version)
        if code is not Code.NONE:
            kept = frozenset() if code in _DENIED else _OF_TOPICS
            codes = {key: found if found in kept else code for key, found in codes.items()}
        else:
            taken = self._taken(request.topics, codes)
            if taken:
                group = self._store.get(request.group_id)
                group.pending.setdefault(request.producer_id, {}).update(taken)
                self._store.write(self._place(request.group_id), request.producer_id, request.producer_epoch)
        kind = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
        listed = _coded(kind, kind.TxnOffsetCommitResponsePartition, request.topics, codes, version)
        return TxnOffsetCommitResponse(version=version, topics=listed)

    def _admitted(self, request: Any, version: int) -> Code:
        """Whether the transaction's coordinator and the group admit the offsets."""
        group = self._group(request.group_id)
        place, pair = self._place(request.group_id), Pair(request.producer_id, request.producer_epoch)
        verifies = self._state.verifies
        if pair.epoch < 0 and not verifies:
            return Code.UNKNOWN_SERVER_ERROR
        fenced = self._store.is_fenced(place, *pair)
        if fenced and self._state.fences_first:
            return Code.INVALID_PRODUCER_EPOCH
        if verifies and not self._store.is_open(place, pair.producer_id, pair.epoch if self._state.checks_open_epoch else None):
            partition = self._state.state_partition(GROUPS, request.group_id)
            assert partition is not None
            code = self._transactions.admits(request.transactional_id, pair, partition.key, adds=version >= ADDS_GROUP)
            if code is Code.TRANSACTION_ABORTABLE and version != KNOWS_ABORTABLE:
                return Code.INVALID_TXN_STATE
            if code is not Code.NONE:
                return code
        if fenced:
            return Code.INVALID_PRODUCER_EPOCH
        return group.refuses(request.member_id or "", request.generation_id, transactional=True)

    def _group(self, name: str) -> Group:
        """The group that a commit is for; it may be refused."""
        known = self._store.groups.get(name)
        if known is None:
            known = self._store.get(name) if self._state.has_old_coordinator else Group(name)
        return known

    def _place(self, group: str) -> int:
        partition = self._state.state_partition(GROUPS, group)
        return -1 if partition is None else partition.index

    def _codes(self, broker: Broker, topics: Any, whole: Code) -> dict[Key, Code]:
        """The code of each partition; `whole`: of those that exist."""
        known, found = self._state.topics_of(broker), {}
        for topic in topics:
            for part in topic.partitions:
                code = whole
                if whole in _DENIED:
                    pass
                elif not self._state.rights.may(Operation.READ, Kind.TOPIC, topic.name):
                    code = Code.TOPIC_AUTHORIZATION_FAILED
                elif self._state.partition_of(broker, known.get(topic.name), part.partition_index) is None:
                    code = Code.UNKNOWN_TOPIC_OR_PARTITION
                if code is Code.NONE and len(part.committed_metadata or "") > self._state.settings.largest_metadata:
                    code = Code.OFFSET_METADATA_TOO_LARGE
                found[topic.name, part.partition_index] = code
        return found

    def _taken(self, topics: Any, codes: dict[Key, Code]) -> dict[Key, Stored]:
        return {
            (topic.name, part.partition_index): self._store.stored(
                part.committed_offset, part.committed_leader_epoch, part.committed_metadata
            )
            for topic in topics
            for part in topic.partitions
            if codes[topic.name, part.partition_index] is Code.NONE
        }

    def list(self, broker: Broker, request: Any, version: int) -> Any:
        listed = ListGroupsResponse.ListedGroup
        if any(kind == GROUPS for kind, _ in self._state.loading):
            return ListGroupsResponse(version=version, error_code=int(Code.COORDINATOR_LOAD_IN_PROGRESS), groups=[])
        found = []
        for group in self._store.groups.values():
            shown = self._state.rights.may(Operation.DESCRIBE, Kind.CLUSTER)
            if self._state.not_coordinator(broker, GROUPS, group.name) is Code.NONE and (
                shown or self._state.rights.may(Operation.DESCRIBE, Kind.GROUP, group.name)
            ):
                more = {"group_state": group.state} if version >= 4 else {}
                more |= {"group_type": "classic" if group.is_classic else "consumer"} if version >= 5 else {}
                found.append(listed(version=version, group_id=group.name, protocol_type=group.protocol_type, **more))
        return ListGroupsResponse(version=version, error_code=0, groups=found)

    def describe(self, broker: Broker, request: Any, version: int) -> Any:
        return DescribeGroupsResponse(version=version, groups=[self._described(broker, name, version) for name in request.groups])

    def _described(self, broker: Broker, name: str, version: int) -> Any:
        kind = DescribeGroupsResponse.DescribedGroup
        code, group = self._moved(broker, name, Operation.DESCRIBE), self._store.groups.get(name)
        if code is not Code.NONE:
            return kind(version=version, error_code=int(code), group_id=name)
        if group is None or not group.is_classic:
            more: dict[str, Any] = {}
            if version >= MISSING_IS_ERROR:
                told = f"Group {name} not found." if group is None else f"Group {name} is not a classic group."
                more = {"error_code": int(Code.GROUP_ID_NOT_FOUND), "error_message": told}
            return kind(version=version, group_id=name, group_state="Dead", **more)
        members = [
            kind.DescribedGroupMember(version=version, member_id=one.member_id, client_id=one.client_id, client_host=one.client_host)
            for one in group.members
        ]
        return kind(
            version=version, error_code=0, group_id=name, group_state=group.state, protocol_type=group.protocol_type, members=members
        )

    def describe_consumer(self, broker: Broker, request: Any, version: int) -> Any:
        kind, found = ConsumerGroupDescribeResponse.DescribedGroup, []
        for name in request.group_ids:
            code, group = self._moved(broker, name, Operation.DESCRIBE), self._store.groups.get(name)
            more: dict[str, Any] = {}
            if code is Code.NONE and (group is None or group.is_classic):
                told = f"Group {name} not found." if group is None else f"Group {name} is not a consumer group."
                code, more = Code.GROUP_ID_NOT_FOUND, {"error_message": told}
            elif code is Code.NONE and group is not None:
                nothing = kind.Member.Assignment(version=version, topic_partitions=[])
                members = [
                    kind.Member(
                        version=version,
                        member_id=one.member_id,
                        client_id=one.client_id,
                        client_host=one.client_host,
                        assignment=nothing,
                        target_assignment=nothing,
                    )
                    for one in group.members
                ]
                more = {"group_state": group.state, "members": members}
            found.append(kind(version=version, error_code=int(code), group_id=name, **more))
        return ConsumerGroupDescribeResponse(version=version, groups=found)

    def delete(self, broker: Broker, request: Any, version: int) -> Any:
        """Also a group whose offsets an open transaction holds is deleted, with those offsets."""
        results = []
        for name in request.groups_names:
            code, group = self._moved(broker, name, Operation.DELETE), self._store.groups.get(name)
            if code is Code.NONE:
                code = Code.GROUP_ID_NOT_FOUND if group is None else Code.NON_EMPTY_GROUP if group.members else Code.NONE
            if code is Code.NONE:
                del self._store.groups[name]
            results.append(DeleteGroupsResponse.DeletableGroupResult(version=version, group_id=name, error_code=int(code)))
        return DeleteGroupsResponse(version=version, results=results)

    def delete_offsets(self, broker: Broker, request: Any, version: int) -> Any:
        kind = OffsetDeleteResponse.OffsetDeleteResponseTopic
        code, group = self._moved(broker, request.group_id, Operation.DELETE), self._store.groups.get(request.group_id)
        if code is Code.NONE and group is None:
            code = Code.GROUP_ID_NOT_FOUND
        if code is not Code.NONE or group is None:
            return OffsetDeleteResponse(version=version, error_code=int(code), topics=[])
        topics = []
        for topic in request.topics:
            parts, code = [], Code.GROUP_SUBSCRIBED_TO_TOPIC if group.reads(topic.name) else Code.NONE
            for part in topic.partitions:
                for offsets in (group.offsets, *group.pending.values()):
                    if code is Code.NONE:
                        offsets.pop((topic.name, part.partition_index), None)
                parts.append(
                    kind.OffsetDeleteResponsePartition(version=version, partition_index=part.partition_index, error_code=int(code))
                )
            topics.append(kind(version=version, name=topic.name, partitions=parts))
        return OffsetDeleteResponse(version=version, error_code=0, topics=topics)


def _fetched_topics(topic_type: Any, part_type: Any, found: dict[Key, tuple[Code, Stored]], version: int) -> list[Any]:
    by_topic: dict[str, list[Any]] = {}
    for (topic, index), (code, stored) in found.items():
        more = {"committed_leader_epoch": stored.leader_epoch} if version >= 5 else {}
        part = part_type(
            version=version,
            partition_index=index,
            committed_offset=stored.offset,
            metadata=stored.metadata,
            error_code=int(code),
            **more,
        )
        by_topic.setdefault(topic, []).append(part)
    return [topic_type(version=version, name=topic, partitions=parts) for topic, parts in by_topic.items()]


def _coded(topic_type: Any, part_type: Any, topics: Any, codes: dict[Key, Code], version: int) -> list[Any]:
    return [
        topic_type(
            version=version,
            name=topic.name,
            partitions=[
                part_type(
                    version=version,
                    partition_index=part.partition_index,
                    error_code=int(codes[topic.name, part.partition_index]),
                )
                for part in topic.partitions
            ],
        )
        for topic in topics
    ]
