"""What a cluster's brokers can do, and what time it is there. Reads only.

The time is what DescribeQuorum (KIP-836) gives as the moment at which the quorum's leader itself was last caught up: now, by its clock
(LeaderState.describeReplicaState). Clusters with ZooKeeper and those older than 3.3 do not tell it, nor to users without Describe on the
cluster; no other read-only answer holds a broker's time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import DescribeQuorumRequest

from ferry.clusters.answers import DESCRIBE_QUORUM, Action
from ferry.clusters.connections import ClusterConnection, EventLoop, RequestLost, RequestNotSent
from ferry.errors import ClusterUnreachable

if TYPE_CHECKING:
    from ferry.config import Cluster

_METADATA_TOPIC = "__cluster_metadata"
# The quickest of so many answers says the time best.
CLOCK_LOOKS = 3
# A controller that is being elected must not hold up whoever asks.
CLOCK_MILLISECONDS = 5_000


@dataclass(frozen=True)
class Clock:
    """How far the cluster's clock is ahead of ours, in ms, to within `within_ms`."""

    ahead_ms: int
    within_ms: int


@dataclass(frozen=True)
class Capabilities:
    """Requests that the brokers take (newest version by API key), finalized features by name, and the clock or why there is none."""

    newest: Mapping[int, int] = field(hash=False)
    features: Mapping[str, int] = field(default_factory=dict, hash=False)
    clock: Clock | None = None
    no_clock: str = ""


def ask_capabilities(cluster: Cluster) -> Capabilities:
    """Ask any broker. ClusterUnreachable, AuthenticationFailed."""
    from ferry.config import ClientRole  # noqa: PLC0415 - see InternalTopicReader

    loop = EventLoop()
    connection = ClusterConnection(loop, cluster, ClientRole.ADMIN)
    try:
        return loop.run(_ask, connection)
    except (RequestNotSent, RequestLost) as problem:
        raise ClusterUnreachable(f"cluster {cluster.alias} ({cluster.bootstrap}): asking what it can do failed: {problem}") from problem
    finally:
        connection.close()
        loop.close()


async def _ask(connection: ClusterConnection) -> Capabilities:
    await connection.open()
    offers = await connection.offers()
    newest = {entry.api_key: entry.max_version for entry in offers.api_keys}
    features = {feature.name: int(feature.max_version_level) for feature in offers.finalized_features or ()}
    if newest.get(DescribeQuorumRequest.API_KEY, 0) < 1:
        return Capabilities(newest, features, None, "only clusters with KRaft, from 3.3 on, tell it")
    looks = [await _look(connection) for _ in range(CLOCK_LOOKS)]
    clocks = [look for look in looks if isinstance(look, Clock)]
    if clocks:
        return Capabilities(newest, features, min(clocks, key=lambda clock: clock.within_ms))
    return Capabilities(newest, features, None, str(looks[0]))


async def _look(connection: ClusterConnection) -> Clock | str:
    topic = DescribeQuorumRequest.TopicData
    asked = topic(topic_name=_METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])
    before = time.time_ns()
    try:
        answer = await connection.send(DescribeQuorumRequest(topics=[asked], min_version=1), milliseconds=CLOCK_MILLISECONDS)
    except (RequestNotSent, RequestLost) as problem:
        return str(problem)
    return _clock(answer, before // 1_000_000, time.time_ns() // 1_000_000)


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
