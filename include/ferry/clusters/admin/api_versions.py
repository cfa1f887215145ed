"""What the brokers of a cluster can do: the requests that they offer (ApiVersions), finalized features, and the time of their clock.

If the broker's version of a request lacks a field, kafka-python leaves the field out. So Ferry checks the requests that a correct copy
needs before it writes anything, and refuses a cluster that lacks one. Plan, status and report list information that a cluster cannot give.

The clock comes from DescribeQuorum (KIP-836). Its answer says when the quorum's leader was last caught up with itself: that is now, by the
leader's clock (LeaderState.describeReplicaState). No other read-only answer holds a broker's time. Only clusters with KRaft, from 3.3 on,
have it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer import FetchRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest

from ferry import clock
from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.admin.service_profiles import named, services_at
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import DESCRIBE_QUORUM, Action
from ferry.clusters.net.shared_connection import ConnectedCluster
from ferry.errors import BrokerTooOld, ClusterUnreachable

NO_ANSWER = (RequestNotSent, RequestLost)
_METADATA_TOPIC = "__cluster_metadata"
# Ferry asks for the time this many times, and takes the quickest answer, which is the most exact.
CLOCK_READINGS = 3
# The election of a controller must not delay the caller for longer.
CLOCK_MILLISECONDS = 5_000


class Feature(NamedTuple):
    """A request in a version, the release of Kafka that brought it, what does not work without it, and what to be careful about then."""

    request: type
    version: int
    since: str
    without: str
    heed: str = ""


class Lack(NamedTuple):
    """Something that a cluster cannot do, in the words of a report."""

    what: str
    reason: str


TARGET_NEEDS = (
    Feature(InitProducerIdRequest, 3, "2.5", "a writer that was superseded cannot be told from its successor (KIP-360)"),
    Feature(OffsetFetchRequest, 7, "2.5", "a position may be read while its transaction is undecided (KIP-447)"),
)
# Of a flow that copies without transactions.
PLAIN_TARGET_NEEDS = (Feature(InitProducerIdRequest, 0, "0.11", "a batch that is sent again would be appended twice (KIP-98)"),)
SOURCE_NEEDS = (Feature(FetchRequest, 4, "0.11", "aborted transactions would be copied (KIP-98)"),)
TOPIC_IDS = Feature(
    MetadataRequest,
    10,
    "2.8",
    "Ferry cannot see that a source topic was deleted and created again: there are no topic ids (KIP-516)",
    "before you create a source topic again, stop the flow; afterwards say with ferry seed where copying begins",
)
FETCH_BY_TOPIC_ID = Feature(
    FetchRequest, 13, "3.1", "if a topic is created again during a copy, Ferry notices it a moment later, from metadata (KIP-516)"
)
SOURCE_WISHES = (
    TOPIC_IDS,
    Feature(FetchRequest, 12, "2.7", "Ferry cannot see that a log was truncated and has grown again (KIP-320)"),
    FETCH_BY_TOPIC_ID,
    Feature(DescribeProducersRequest, 0, "2.8", "Ferry cannot tell which producer holds an open transaction (KIP-664)"),
    Feature(ListTransactionsRequest, 0, "3.0", "Ferry cannot tell which transactional id holds an open transaction (KIP-664)"),
)
REMOTE_TOPIC_IDS = Feature(
    MetadataRequest,
    10,
    "2.8",
    "Ferry cannot see that a remote topic was deleted and created again: there are no topic ids (KIP-516)",
    "do not delete remote topics",
)
PLAIN_TARGET_WISHES = (REMOTE_TOPIC_IDS,)
# The release of a broker decides which requests it offers. The protocol version of its cluster decides whether topics have ids.
NO_IDS = "has topics without ids: the inter.broker.protocol.version of its brokers is below 2.8"
TARGET_WISHES = (
    *PLAIN_TARGET_WISHES,
    Feature(DescribeProducersRequest, 0, "2.8", "Ferry does not find hanging transactions of the flow (KIP-664)"),
)


def target_features(*, transactions: bool) -> tuple[tuple[Feature, ...], tuple[Feature, ...]]:
    """What a target must offer, and what it should offer: to flows that copy in `transactions`, or to flows that do not."""
    return (TARGET_NEEDS, TARGET_WISHES) if transactions else (PLAIN_TARGET_NEEDS, PLAIN_TARGET_WISHES)


# Requests that show the release, also on a service that leaves out others.
MARKERS = (
    *SOURCE_NEEDS,
    *TARGET_NEEDS,
    *SOURCE_WISHES,
    Feature(DescribeClusterRequest, 0, "2.8", ""),
    Feature(DescribeTransactionsRequest, 0, "3.0", ""),
    Feature(OffsetFetchRequest, 8, "3.0", ""),
)


@dataclass(frozen=True)
class Clock:
    """How far the cluster's clock is ahead of ours, in ms, to within `within_ms`."""

    ahead_ms: int
    within_ms: int


@dataclass(frozen=True)
class Capabilities:
    """What a cluster can do: requests (newest version by API key), finalized features by name, and the clock, or why it is not known."""

    newest: Mapping[int, int] = field(hash=False)
    features: Mapping[str, int] = field(default_factory=dict, hash=False)
    clock: Clock | str = ""


def lacking(
    cluster: ConnectedCluster, topics: Iterable[TopicDescription], *, needs: Iterable[Feature], wishes: Sequence[Feature]
) -> tuple[Lack, ...]:
    """The `wishes` that a cluster with these topics cannot fulfil. BrokerTooOld if it lacks one of `needs`. Errors as of `ask`."""
    offered, cluster_id = cluster.ask(_offered)
    service = named(services_at(cluster.cluster.bootstrap, cluster_id, offered))
    for need in missing(needs, offered):
        told = f"{lack(need, offered, service)}: {need.without}; {mending(need, offered, service)}"
        raise BrokerTooOld(f"{cluster.cluster.where} {told}")
    found = unfulfilled(wishes, offered, without_ids=any(topic.topic_id is None for topic in topics))
    return tuple(Lack(f"cluster {cluster.alias} {lack(wish, offered, service)}", wish.without) for wish in found)


async def _offered(connection: ClusterConnection) -> tuple[Mapping[int, int], str]:
    return await connection.newest(), connection.cluster_id


def lack(feature: Feature, offered: Mapping[int, int], service: str) -> str:
    """What to say of a cluster without `feature` (pure). `service`: the name of the service, if it is one.

    A cluster is called old only if it offers nothing of the release that brought the feature, or of a later one.
    """
    if not missing([feature], offered):
        return NO_IDS
    if not service and _is_older(feature.since, offered):
        return f"is older than Kafka {feature.since}"
    request = feature.request.__name__.removesuffix("Request")
    told = f"does not offer {request} in version {feature.version}, as Kafka {feature.since} does"
    return f"is {service}, which {told}" if service else told


def mending(feature: Feature, offered: Mapping[int, int], service: str) -> str:
    """What to do about a missing feature."""
    old = not service and _is_older(feature.since, offered)
    return (
        f"upgrade the cluster to {feature.since} or newer"
        if old
        else feature.heed or "you can start; only the provider of the cluster can change this"
    )


def _is_older(release: str, offered: Mapping[int, int]) -> bool:
    later = [marker for marker in MARKERS if _number(marker.since) >= _number(release)]
    return len(missing(later, offered)) == len(later)


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def missing(features: Iterable[Feature], offered: Mapping[int, int]) -> list[Feature]:
    """Those of `features` that brokers lack if they offer these requests: newest version by API key (pure)."""
    return [feature for feature in features if offered.get(feature.request.API_KEY, -1) < feature.version]  # type: ignore[attr-defined]


def unfulfilled(wishes: Sequence[Feature], offered: Mapping[int, int], *, without_ids: bool) -> list[Feature]:
    """Those of `wishes` that the brokers lack. If topics have no ids, it does not also name fetches by topic id.

    `without_ids`: topics have no ids, although the brokers may offer requests with ids.
    """
    found = missing(wishes, offered)
    found += [wish for wish in wishes if without_ids and wish in {TOPIC_IDS, REMOTE_TOPIC_IDS} and wish not in found]
    return [wish for wish in found if wish is not FETCH_BY_TOPIC_ID or TOPIC_IDS not in found]


def ask_capabilities(cluster: ConnectedCluster) -> Capabilities:
    """Ask any broker. ClusterUnreachable, AuthenticationFailed."""
    try:
        return cluster.ask(_ask)
    except NO_ANSWER as problem:
        raise ClusterUnreachable(f"{cluster.cluster.where}: asking what it can do failed: {problem}") from problem


def tells_time(offered: Mapping[int, int]) -> bool:
    """Whether brokers that offer these requests give the time of their clock (pure)."""
    return offered.get(DescribeQuorumRequest.API_KEY, 0) >= 1


async def _ask(connection: ClusterConnection) -> Capabilities:
    newest, features = await connection.newest(), await connection.features()
    if not tells_time(newest):
        return Capabilities(newest, features, "only clusters with KRaft, from 3.3 on, tell it")
    readings = [await _read_clock(connection) for _ in range(CLOCK_READINGS)]
    clocks = [reading for reading in readings if isinstance(reading, Clock)]
    return Capabilities(newest, features, min(clocks, key=lambda reading: reading.within_ms) if clocks else readings[0])


async def _read_clock(connection: ClusterConnection) -> Clock | str:
    topic = DescribeQuorumRequest.TopicData
    asked = topic(topic_name=_METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])
    before = clock.time_ms()
    try:
        answer = await connection.send(DescribeQuorumRequest(topics=[asked], min_version=1), milliseconds=CLOCK_MILLISECONDS)
    except NO_ANSWER as problem:
        return str(problem)
    return _clock(answer, before, clock.time_ms())


def _clock(answer: Any, before: int, after: int) -> Clock | str:
    partitions = [partition for topic in answer.topics for partition in topic.partitions]
    code = DESCRIBE_QUORUM.gravest([answer.error_code, *(partition.error_code for partition in partitions)])
    if DESCRIBE_QUORUM.action(code) is Action.DENIED:
        return f"it tells only users with {DESCRIBE_QUORUM.right(code)}"
    if code or not partitions:
        return f"it answers {DESCRIBE_QUORUM.told(code)}"
    found = partitions[0]
    now = next((voter.last_caught_up_timestamp for voter in found.current_voters if voter.replica_id == found.leader_id), -1)
    if now <= 0:
        return "its quorum has no leader among the voters"
    return Clock(round(now - (before + after) / 2), (after - before + 1) // 2 + 1)
