"""How a broker answers questions about the cluster: its brokers, topics, coordinators, versions, clock and ACLs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kafka.protocol.admin import DescribeAclsResponse, DescribeClusterResponse, DescribeQuorumResponse
from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorResponse, MetadataResponse
from tests.simulation.codes import Code
from tests.simulation.partition import NO_LEADER, Partition
from tests.simulation.releases import features, request_versions
from tests.simulation.rights import Kind, Operation
from tests.simulation.state import GROUPS, TRANSACTIONS, Broker, ClusterState
from tests.simulation.topics import Topic, as_decoded, name_problem

SEVERAL_KEYS = 4
# What a user may do without an authorizer: everything (AclEntry.supportedOperations), by the codes of AclOperation.
_TOPIC_OPERATIONS, _CLUSTER_OPERATIONS = frozenset({3, 4, 5, 6, 7, 8, 10, 11}), frozenset({5, 7, 8, 9, 10, 11, 12})
_COORDINATED = {
    GROUPS: (Kind.GROUP, Code.GROUP_AUTHORIZATION_FAILED),
    TRANSACTIONS: (Kind.TRANSACTIONAL_ID, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
_TOPIC = MetadataResponse.MetadataResponseTopic


class ClusterMetadata:
    """Answers these requests."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        settings = state.settings
        self.versions = request_versions(settings.release)
        self.features = features(settings.release, settings.transaction_version)

    def metadata(self, broker: Broker, request: Any, version: int) -> Any:
        topics = self._state.topics_of(broker)
        if request.topics is None:
            shown = [topic for topic in topics.values() if self._state.rights.may(Operation.DESCRIBE, Kind.TOPIC, topic.name)]
            found = [self._topic(broker, topic, request, version) for topic in shown]
        else:
            found = [self._asked(broker, asked, request, version) for asked in request.topics]
        brokers = [
            MetadataResponse.MetadataResponseBroker(version=version, node_id=node, host=one.host, port=one.port, rack=None)
            for node, one in self._state.brokers.items()
            if node in self._state.up_for(broker)
        ]
        more: dict[str, Any] = {}
        if 8 <= version <= 10 and request.include_cluster_authorized_operations:
            more["authorized_operations"] = self._state.rights.of(_CLUSTER_OPERATIONS, Kind.CLUSTER)
        return MetadataResponse(
            version=version,
            brokers=brokers,
            cluster_id=self._state.settings.cluster_id,
            controller_id=brokers[0].node_id if brokers else -1,
            topics=found,
            **more,
        )

    def _asked(self, broker: Broker, asked: Any, request: Any, version: int) -> Any:
        topic = self._state.topic_of(broker, asked.name, asked.topic_id)
        known = topic.name if topic is not None else asked.name
        denied = bool(known) and not self._state.rights.may(Operation.DESCRIBE, Kind.TOPIC, known)
        if topic is not None and not denied:
            return self._topic(broker, topic, request, version)
        code = Code.UNKNOWN_TOPIC_OR_PARTITION if asked.name else Code.UNKNOWN_TOPIC_ID
        if asked.name and name_problem(asked.name):
            code = Code.INVALID_TOPIC_EXCEPTION
        if denied:
            code = Code.TOPIC_AUTHORIZATION_FAILED
        more = {"topic_id": as_decoded(asked.topic_id)} if version >= 10 else {}
        return _TOPIC(version=version, error_code=int(code), name=asked.name, is_internal=False, partitions=[], **more)

    def _topic(self, broker: Broker, topic: Topic, request: Any, version: int) -> Any:
        more: dict[str, Any] = {"topic_id": topic.topic_id} if version >= 10 else {}
        if version >= 8 and request.include_topic_authorized_operations:
            more["authorized_operations"] = self._state.rights.of(_TOPIC_OPERATIONS, Kind.TOPIC, topic.name)
        parts = [self._partition(broker, part, version) for part in topic.partitions]
        return _TOPIC(version=version, error_code=0, name=topic.name, is_internal=topic.is_internal, partitions=parts, **more)

    def _partition(self, broker: Broker, partition: Partition, version: int) -> Any:
        led, up = self._state.led(broker, partition), self._state.up_for(broker)
        more: dict[str, Any] = {"leader_epoch": led.epoch} if version >= 7 else {}
        if version >= 5:
            more["offline_replicas"] = [node for node in partition.replicas if node not in up or node in partition.offline]
        return _TOPIC.MetadataResponsePartition(
            version=version,
            error_code=int(Code.LEADER_NOT_AVAILABLE if led.leader == NO_LEADER else Code.NONE),
            partition_index=partition.index,
            leader_id=led.leader,
            replica_nodes=list(partition.replicas),
            isr_nodes=[] if led.leader == NO_LEADER and self._state.empties_in_sync else list(led.in_sync),
            **more,
        )

    def coordinators(self, broker: Broker, request: Any, version: int) -> Any:
        if version >= SEVERAL_KEYS:
            found = [self._coordinator(broker, key, request.key_type, version) for key in request.coordinator_keys]
            return FindCoordinatorResponse(version=version, coordinators=found)
        code, node, host, port = self._located(broker, request.key, request.key_type)
        more = {"error_message": None} if version >= 1 else {}
        return FindCoordinatorResponse(version=version, error_code=int(code), node_id=node, host=host, port=port, **more)

    def _coordinator(self, broker: Broker, key: str, kind: int, version: int) -> Any:
        code, node, host, port = self._located(broker, key, kind)
        return FindCoordinatorResponse.Coordinator(version=version, key=key, node_id=node, host=host, port=port, error_code=int(code))

    def _located(self, broker: Broker, key: str, kind: int) -> tuple[Code, int, str, int]:
        nowhere = -1, "", -1
        if kind not in {GROUPS, TRANSACTIONS}:
            return Code.INVALID_REQUEST, *nowhere
        resource, denied = _COORDINATED[kind]
        if not self._state.rights.may(Operation.DESCRIBE, resource, key):
            return denied, *nowhere
        partition = self._state.coordinator(kind, key)
        led = NO_LEADER if partition is None else self._state.led(broker, partition).leader
        if led == NO_LEADER or led not in self._state.up_for(broker):
            return Code.COORDINATOR_NOT_AVAILABLE, *nowhere
        found = self._state.brokers[led]
        return Code.NONE, led, found.host, found.port

    def api_versions(self, broker: Broker, request: Any, version: int) -> Any:
        keys = [_offered(version, key, *offered) for key, offered in self.versions.items()]
        more: dict[str, Any] = {}
        if version >= 3:
            more["finalized_features"] = [
                ApiVersionsResponse.FinalizedFeatureKey(version=version, name=name, max_version_level=level, min_version_level=level)
                for name, level in self.features.items()
            ]
            more["finalized_features_epoch"] = 1
        return ApiVersionsResponse(version=version, error_code=0, api_keys=keys, **more)

    def cluster(self, broker: Broker, request: Any, version: int) -> Any:
        brokers = [
            DescribeClusterResponse.DescribeClusterBroker(version=version, broker_id=node, host=one.host, port=one.port, rack=None)
            for node, one in self._state.brokers.items()
            if node in self._state.up_for(broker)
        ]
        more: dict[str, Any] = {}
        if request.include_cluster_authorized_operations:
            more["authorized_operations"] = self._state.rights.of(_CLUSTER_OPERATIONS, Kind.CLUSTER)
        return DescribeClusterResponse(
            version=version,
            error_code=0,
            cluster_id=self._state.settings.cluster_id,
            controller_id=brokers[0].broker_id if brokers else -1,
            brokers=brokers,
            **more,
        )

    def quorum(self, broker: Broker, request: Any, version: int) -> Any:
        """One voter, the first broker. Ferry reads the cluster's clock from it."""
        kind = DescribeQuorumResponse.TopicData
        leader = next(iter(self._state.brokers))
        # Voters and observers have classes of the same name.
        voter = kind.PartitionData.fields["current_voters"].data_class(
            version=version,
            replica_id=leader,
            log_end_offset=1,
            last_fetch_timestamp=self._state.now,
            last_caught_up_timestamp=self._state.now,
            **({"replica_directory_id": None} if version >= 2 else {}),
        )
        part = kind.PartitionData(
            version=version,
            partition_index=0,
            error_code=0,
            leader_id=leader,
            leader_epoch=1,
            high_watermark=1,
            current_voters=[voter],
            observers=[],
            **({"error_message": None} if version >= 2 else {}),
        )
        topics = [kind(version=version, topic_name=topic.topic_name, partitions=[part]) for topic in request.topics]
        more: dict[str, Any] = {"error_message": None, "nodes": []} if version >= 2 else {}
        return DescribeQuorumResponse(version=version, error_code=0, topics=topics, **more)

    def acls(self, broker: Broker, request: Any, version: int) -> Any:
        code, told = int(Code.SECURITY_DISABLED), "No Authorizer is configured on the broker"
        return DescribeAclsResponse(version=version, error_code=code, error_message=told, resources=[])


@lru_cache(maxsize=1_000)
def _offered(version: int, key: int, oldest: int, newest: int) -> Any:
    """Answers share it: nobody changes it."""
    return ApiVersionsResponse.ApiVersion(version=version, api_key=key, min_version=oldest, max_version=newest)
