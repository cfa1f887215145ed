"""How a broker answers requests that change or show topics and their configs (ReplicationControlManager, ConfigurationControlManager)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kafka.protocol.admin import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)
from tests.simulation.codes import Code
from tests.simulation.groups import GroupStore
from tests.simulation.rights import Kind, Operation
from tests.simulation.state import Broker, ClusterState
from tests.simulation.steps import StepKind
from tests.simulation.topic_configs import OF_BROKER_FILE, OF_KAFKA, config_problem
from tests.simulation.topics import Topic, as_decoded, name_problem

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
_LISTS = frozenset({"cleanup.policy", "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})
# Broker configs that change only with a restart.
_READ_ONLY = frozenset({"auto.create.topics.enable", "default.replication.factor", "log.retention.hours", "node.id", "num.partitions"})
# Broker configs with the meaning of topic configs, and the others that Ferry looks for.
_OF_BROKERS = {
    "auto.create.topics.enable": "false",
    "compression.type": "producer",
    "default.replication.factor": "1",
    "log.cleanup.policy": "delete",
    "log.message.timestamp.after.max.ms": "3600000",
    "log.message.timestamp.before.max.ms": "9223372036854775807",
    "log.message.timestamp.type": "CreateTime",
    "log.retention.bytes": "-1",
    "log.retention.hours": "168",
    "message.max.bytes": "1048588",
    "min.insync.replicas": "1",
    "num.partitions": "1",
    "offset.metadata.max.bytes": "4096",
    "remote.log.storage.system.enable": "false",
    "transaction.max.timeout.ms": "900000",
}
Problem = tuple[Code, str | None]
_FINE: Problem = Code.NONE, None


class Administration:
    """Answers these requests. Each broker passes changes on to the controller, so any broker takes them."""

    def __init__(self, state: ClusterState, groups: GroupStore) -> None:
        self._state, self._groups = state, groups

    def create_topics(self, broker: Broker, request: Any, version: int) -> Any:
        found = []
        for wanted in request.topics:
            code, told = self._creation_problem(wanted)
            more: dict[str, Any] = {}
            if code is Code.NONE:
                more = self._created(wanted, version, only_checked=bool(request.validate_only))
            found.append(
                CreateTopicsResponse.CreatableTopicResult(
                    version=version, name=wanted.name, error_code=int(code), error_message=told, **more
                )
            )
        return CreateTopicsResponse(version=version, topics=found)

    def _creation_problem(self, wanted: Any) -> Problem:
        rights = self._state.rights
        if not rights.may(Operation.CREATE, Kind.CLUSTER) and not rights.may(Operation.CREATE, Kind.TOPIC, wanted.name):
            return Code.TOPIC_AUTHORIZATION_FAILED, None
        if told := name_problem(wanted.name):
            return Code.INVALID_TOPIC_EXCEPTION, told
        if wanted.name in self._state.topics:
            return Code.TOPIC_ALREADY_EXISTS, f"Topic '{wanted.name}' already exists."
        plain = wanted.name.replace(".", "_")
        for name in self._state.topics:
            if name.replace(".", "_") == plain:
                return Code.INVALID_TOPIC_EXCEPTION, f"Topic '{wanted.name}' collides with existing topic: {name}"
        problem = self._size_problem(wanted)
        if problem != _FINE:
            return problem
        told = next((told for one in wanted.configs or () if (told := self._config_problem(one.name, one.value or ""))), "")
        return (Code.INVALID_CONFIG, told) if told else _FINE

    def _config_problem(self, name: str, value: str) -> str:
        return config_problem(self._state.topic_defaults, name, value)

    def _size_problem(self, wanted: Any) -> Problem:
        replicas, partitions, known = wanted.replication_factor, wanted.num_partitions, len(self._state.brokers)
        if replicas < -1 or replicas == 0:
            return Code.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0, or -1 to use the default value."
        if partitions < -1 or partitions == 0:
            return Code.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        if replicas > known:  # brokers that are down count too (StripedReplicaPlacer)
            told = f"Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} cannot be reached "
            return Code.INVALID_REPLICATION_FACTOR, f"{told}because only {known} broker(s) are registered."
        return _FINE

    def _created(self, wanted: Any, version: int, *, only_checked: bool) -> dict[str, Any]:
        partitions, replicas = max(wanted.num_partitions, 1), max(wanted.replication_factor, 1)
        config = {one.name: one.value for one in wanted.configs or ()}
        if only_checked:  # the answer has an id all the same
            topic = Topic(wanted.name, self._state.new_id(), [(1,)], config, self._state.topic_defaults)
        else:
            topic = self._state.create_topic(wanted.name, partitions, replicas, config)
        more: dict[str, Any] = {}
        if version >= 7:
            more["topic_id"] = None if only_checked and self._state.has_zookeeper else as_decoded(topic.topic_id)
        if version >= 5:
            shown = [_created_entry(name, *entry, version) for name, entry in topic.all_shown().items()]
            more |= {"num_partitions": partitions, "replication_factor": replicas, "configs": shown}
        return more

    def create_partitions(self, broker: Broker, request: Any, version: int) -> Any:
        found = []
        for wanted in request.topics:
            code, told = self._growth_problem(wanted)
            if code is Code.NONE and not request.validate_only:
                topic = self._state.topics[wanted.name]
                replicas = len(topic.partitions[0].replicas)
                first = len(topic.partitions)
                topic.grow(self._state.spread(first, wanted.count - first, replicas))
                topic.leave_sync(self._state.brokers.keys() - self._state.up())
            found.append(
                CreatePartitionsResponse.CreatePartitionsTopicResult(
                    version=version, name=wanted.name, error_code=int(code), error_message=told
                )
            )
        return CreatePartitionsResponse(version=version, results=found)

    def _growth_problem(self, wanted: Any) -> Problem:
        topic = self._state.topics.get(wanted.name)
        if not self._state.rights.may(Operation.ALTER, Kind.TOPIC, wanted.name):
            return Code.TOPIC_AUTHORIZATION_FAILED, None
        if topic is None:
            return Code.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        now = len(topic.partitions)
        if wanted.count == now:
            return Code.INVALID_PARTITIONS, f"Topic already has {now} partition(s)."
        if wanted.count < now:
            told = f"The topic {wanted.name} currently has {now} partition(s); {wanted.count} would not be an increase."
            return Code.INVALID_PARTITIONS, told
        return _FINE

    def delete_topics(self, broker: Broker, request: Any, version: int) -> Any:
        asked = [(one.name, one.topic_id) for one in request.topics] if version >= 6 else [(name, None) for name in request.topic_names]
        found = []
        for name, topic_id in asked:
            kind = DeleteTopicsResponse.DeletableTopicResult
            topic = self._state.topics.get(name) if name else self._state.topic_ids.get(topic_id)
            if name and not all(self._state.rights.may(needs, Kind.TOPIC, name) for needs in (Operation.DESCRIBE, Operation.DELETE)):
                denied = {"error_message": None} if version >= 5 else {}
                found.append(kind(version=version, name=name, error_code=int(Code.TOPIC_AUTHORIZATION_FAILED), **denied))
                continue
            if topic is not None:
                self.delete(topic)
            code = Code.NONE if topic else Code.UNKNOWN_TOPIC_OR_PARTITION if name else Code.UNKNOWN_TOPIC_ID
            told = (
                None if topic else "This server does not host this topic-partition." if name else "This server does not host this topic ID."
            )
            knows = topic is not None and not (name and self._state.has_zookeeper)
            more: dict[str, Any] = {"topic_id": topic.topic_id if topic and knows else as_decoded(topic_id)} if version >= 6 else {}
            more |= {"error_message": told} if version >= 5 else {}
            found.append(kind(version=version, name=topic.name if topic else name, error_code=int(code), **more))
        return DeleteTopicsResponse(version=version, responses=found)

    def delete(self, topic: Topic) -> None:
        """Delete a topic; groups forget their offsets of it in a step of their own."""
        self._state.delete_topic(topic)
        self._state.steps.add(StepKind.FORGET, topic.name, lambda: self._forget(topic))

    def _forget(self, topic: Topic) -> bool:
        for group in list(self._groups.groups.values()):
            group.forget(topic.name)
            if self._state.has_old_coordinator and group.is_unused:
                del self._groups.groups[group.name]
        return True

    def describe_configs(self, broker: Broker, request: Any, version: int) -> Any:
        found = []
        for wanted in request.resources:
            names, kind = wanted.configuration_keys, wanted.resource_type
            code, told, entries = Code.NONE, "", dict[str, tuple[str, int]]()
            if kind == TOPIC_RESOURCE:
                topic = self._state.topics_of(broker).get(wanted.resource_name)
                if not self._state.rights.may(Operation.DESCRIBE_CONFIGS, Kind.TOPIC, wanted.resource_name):
                    code, told = Code.TOPIC_AUTHORIZATION_FAILED, ""
                elif topic is None:
                    code, told = Code.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
                else:
                    entries = topic.all_shown()
            elif kind == BROKER_RESOURCE and wanted.resource_name == str(broker.node):
                entries = {name: (value, OF_KAFKA) for name, value in _OF_BROKERS.items()}
                entries["node.id"] = (str(broker.node), OF_BROKER_FILE)
            else:
                code, told = Code.INVALID_REQUEST, f"Unexpected resource {wanted.resource_name} of type {kind}"
            shown = [_entry(name, *entry, version) for name, entry in entries.items() if names is None or name in names]
            result = DescribeConfigsResponse.DescribeConfigsResult
            found.append(
                result(
                    version=version,
                    error_code=int(code),
                    error_message=told,
                    resource_type=kind,
                    resource_name=wanted.resource_name,
                    configs=shown,
                )
            )
        return DescribeConfigsResponse(version=version, results=found)

    def alter_configs(self, broker: Broker, request: Any, version: int) -> Any:
        found = []
        for wanted in request.resources:
            topic = self._state.topics.get(wanted.resource_name) if wanted.resource_type == TOPIC_RESOURCE else None
            code, told = Code.NONE, None
            if not self._state.rights.may(Operation.ALTER_CONFIGS, Kind.TOPIC, wanted.resource_name):
                code = Code.TOPIC_AUTHORIZATION_FAILED
            elif topic is None:
                missing = wanted.resource_type == TOPIC_RESOURCE
                code, told = (
                    (Code.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{wanted.resource_name}' does not exist.")
                    if missing
                    else (Code.INVALID_REQUEST, "only configs of topics can be changed here")
                )
            else:
                code, told = self._alter(topic, wanted.configs, only_checked=bool(request.validate_only))
                code = Code.INVALID_REQUEST if code is Code.INVALID_CONFIG and self._state.has_zookeeper else code
            kind = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
            found.append(
                kind(
                    version=version,
                    error_code=int(code),
                    error_message=told,
                    resource_type=wanted.resource_type,
                    resource_name=wanted.resource_name,
                )
            )
        return IncrementalAlterConfigsResponse(version=version, responses=found)

    def _alter(self, topic: Topic, changes: Any, *, only_checked: bool) -> Problem:
        config = dict(topic.config)
        for change in changes:
            if change.config_operation == DELETE:
                config.pop(change.name, None)
            elif change.config_operation == SET:
                config[change.name] = change.value
            elif change.name not in _LISTS:
                how = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}[change.config_operation]
                return Code.INVALID_CONFIG, f"Can't {how} to key {change.name} because its type is not LIST."
            else:
                listed, given = [one for one in topic.value(change.name).split(",") if one], change.value.split(",")
                adds = change.config_operation == APPEND
                kept = [*listed, *(one for one in given if one not in listed)] if adds else [one for one in listed if one not in given]
                config[change.name] = ",".join(kept)
        told = next((told for name, value in config.items() if (told := self._config_problem(name, value))), "")
        if told:
            return Code.INVALID_CONFIG, told
        if not only_checked:
            topic.set_config(config)
        return _FINE


# Answers share these entries: nobody changes them.
@lru_cache(maxsize=1_000)
def _created_entry(name: str, value: str, source: int, version: int) -> Any:
    kind = CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs
    return kind(version=version, name=name, value=value, read_only=False, config_source=source, is_sensitive=False)


@lru_cache(maxsize=1_000)
def _entry(name: str, value: str, source: int, version: int) -> Any:
    kind = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult
    more: dict[str, Any] = {"config_source": source, "synonyms": []} if version >= 1 else {}
    more |= {"config_type": 0, "documentation": None} if version >= 3 else {}
    return kind(version=version, name=name, value=value, read_only=name in _READ_ONLY, is_sensitive=False, **more)
