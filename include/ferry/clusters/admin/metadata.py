"""Metadata and DescribeConfigs over the connection that all questions of a command share: brokers, topics and configs of a cluster.

The connection takes brokers and leaders from every answer of Metadata, so the next question need not ask for them.
"""

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from confluent_kafka import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest

from ferry.clusters.admin.acl_binding import OPERATIONS
from ferry.clusters.admin.describe import ConfigOrigin, ConfigValue, TopicDescription
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import METADATA, Action
from ferry.clusters.net.event_loop import together
from ferry.clusters.net.failures import is_passing
from ferry.clusters.net.leaders import NO_TOPIC_ID, metadata_request
from ferry.clusters.net.partitions import chunks

# The newest version whose answer holds what the user may do to the cluster; and the bit that is set if the broker does not say it.
CLUSTER_OPERATIONS, NOT_TOLD = 10, 31
# Kafka's codes of a resource (ConfigResource.Type).
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
# By code (DescribeConfigsResponse.ConfigSource); codes above that of DEFAULT are unknown here.
_ORIGINS = {
    1: ConfigOrigin.TOPIC,
    2: ConfigOrigin.BROKER,
    3: ConfigOrigin.ALL_BROKERS,
    4: ConfigOrigin.BROKER_FILE,
    5: ConfigOrigin.DEFAULT,
}
# A cluster that 4.1 or newer formatted reports this as set for all brokers, although nobody set it (eligible leader replicas, KIP-966).
_AS_FORMATTED = ("min.insync.replicas", "1", 3)
# A broker answers a request about this many resources in a fraction of a second. Ferry gives up a broker that hangs after this time.
RESOURCES_A_REQUEST, CONFIGS_MILLISECONDS = 500, 10_000
# Requests side by side: over a distance round trips cost time. Their answers, of a megabyte or more each, share the line.
REQUESTS_AT_ONCE = 4

# A topic, or why it is not described.
Described: TypeAlias = TopicDescription | KafkaError
# The config of a resource, or why it is not known.
Configured: TypeAlias = dict[str, ConfigValue] | KafkaError


async def exists(connection: ClusterConnection, topic: str) -> bool:
    """Whether there is such a topic that the user may describe, or was some seconds ago (KNOWN_SECONDS). RequestNotSent, RequestLost."""
    await connection.leaders.known([topic])
    return not connection.leaders.is_missing(topic) and not connection.leaders.refused(topic)


async def topics(connection: ClusterConnection, names: Collection[str] | None) -> dict[str, Described]:
    """Each of `names`; None: every topic that the user may describe. RequestNotSent, RequestLost."""
    answer = await connection.send(metadata_request(None if names is None else sorted(names)))
    connection.learn_brokers(answer)
    connection.leaders.take(answer)
    return {topic.name: _described(topic) for topic in answer.topics}


async def cluster_operations(connection: ClusterConnection) -> frozenset[str] | None:
    """What the user may do to the cluster (KIP-430); None: the broker does not say. RequestNotSent, RequestLost."""
    request = metadata_request([], include_cluster_authorized_operations=True, max_version=CLUSTER_OPERATIONS)
    return _operations((await connection.send(request)).authorized_operations)


async def topic_operations(connection: ClusterConnection, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """What the user may do to topics, without those that are missing or hidden. RequestNotSent, RequestLost."""
    found: dict[str, frozenset[str]] = {}
    for some in chunks(names, RESOURCES_A_REQUEST):
        answer = await connection.send(metadata_request(some, include_topic_authorized_operations=True))
        told = ((topic.name, _operations(topic.authorized_operations)) for topic in answer.topics)
        found |= {name: operations for name, operations in told if operations is not None}
    return found


def _operations(told: Collection[int] | None) -> frozenset[str] | None:
    return None if told is None or NOT_TOLD in told else frozenset(name for code, name in enumerate(OPERATIONS, 2) if code in told)


def _described(topic: Any) -> Described:
    if METADATA.action(topic.error_code) not in {Action.GO_ON, Action.LEADER} or (topic.error_code and not topic.partitions):
        return KafkaError(topic.error_code)
    parts = sorted(topic.partitions, key=lambda part: part.partition_index)
    return TopicDescription(
        topic_id=_text(topic.topic_id),
        partitions=len(parts),
        replicas=tuple(tuple(part.replica_nodes) for part in parts),
        led=all(part.leader_id >= 0 for part in parts),
        epochs=tuple(getattr(part, "leader_epoch", -1) for part in parts),
    )


def _text(topic_id: UUID | None) -> str | None:
    return str(topic_id) if topic_id and topic_id != NO_TOPIC_ID else None


async def configs(
    connection: ClusterConnection, names: Sequence[str], kind: int, keys: Sequence[str] | None, node: int | None = None
) -> dict[str, Configured]:
    """The effective configs of resources; `keys`: only these entries. `node`: which broker to ask. RequestNotSent, RequestLost."""
    found: dict[str, Configured] = {}
    resource = DescribeConfigsRequest.DescribeConfigsResource
    for some in chunks(names, RESOURCES_A_REQUEST * REQUESTS_AT_ONCE):
        wanted = [
            [resource(resource_type=kind, resource_name=name, configuration_keys=keys) for name in chunk]
            for chunk in chunks(some, RESOURCES_A_REQUEST)
        ]
        requests = [DescribeConfigsRequest(resources=resources, min_version=1) for resources in wanted]
        milliseconds = CONFIGS_MILLISECONDS * len(requests)
        asked = [connection.loop.start(connection.send, request, node, milliseconds) for request in requests]
        for result in (result for answer in await together(asked) for result in answer.results):
            found[result.resource_name] = KafkaError(result.error_code, result.error_message) if result.error_code else _values(result)
    return found


async def broker_config(connection: ClusterConnection) -> tuple[int, Configured]:
    """A broker, and its effective config: each broker gives only its own. If none answers: RequestNotSent or RequestLost of the last one.

    A broker that cannot give its config now counts as one that has not answered.
    """
    problem: Exception = RequestNotSent(f"cluster {connection.alias}: no broker is known to be up")
    for node in connection.brokers():
        try:
            answer = (await configs(connection, [str(node)], BROKER_RESOURCE, None, node))[str(node)]
        except (RequestNotSent, RequestLost) as failure:
            problem = failure
        else:
            if not is_passing(answer):
                return node, answer
            problem = RequestNotSent(f"broker {node}: {answer.str()}")
    raise problem


def _values(result: Any) -> dict[str, ConfigValue]:
    return {
        entry.name: ConfigValue(entry.value, _origin(entry), sensitive=entry.is_sensitive, read_only=entry.read_only)
        for entry in result.configs
    }


def _origin(entry: Any) -> ConfigOrigin:
    if (entry.name, entry.value, entry.config_source) == _AS_FORMATTED:
        return ConfigOrigin.DEFAULT
    return _ORIGINS.get(entry.config_source, ConfigOrigin.UNKNOWN)
