"""Information about the replication into a cluster: MM2's MirrorClient (connect/mirror-client), method for method.

It reads topic names and checkpoints, and writes nothing. The results are those of the Java class, including its peculiarities: it reads
uncommitted records, so checkpoints of aborted transactions count; when the time is over, it returns what it has read so far; it considers
the topics of every flow into the cluster. Two things differ. A record that is not a checkpoint (a null value, another version) does not end
the read: the client skips it with a warning. And a missing checkpoints topic is an error at once.
"""

import logging
import re
from typing import NamedTuple, Self

from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import OpenClusters
from ferry.config import Cluster
from ferry.errors import ArgumentError
from ferry.policy.java_patterns import java_pattern
from ferry.policy.naming import ReplicationPolicy, origins
from ferry.syncs.mm2_topics import PARTITION, decoded
from ferry.wire.internal_records import Checkpoint

UNREACHABLE = -1

_log = logging.getLogger(__name__)


class OffsetAndMetadata(NamedTuple):
    """The offset at which a group continues, and the metadata of its commit at the source."""

    offset: int
    metadata: str


class MirrorClient:
    """Reads one cluster, normally a target. A context manager; `close` ends it for good. Not for several threads."""

    replication_policy: ReplicationPolicy  # interprets names

    def __init__(self, cluster: Cluster, policy: ReplicationPolicy) -> None:
        self.replication_policy = policy
        self._clusters = OpenClusters()
        self._cluster = self._clusters.of(cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._clusters.close()

    def heartbeat_topics(self) -> set[str]:
        """Every topic with heartbeats: the cluster's own and the copies of others. ClusterUnreachable, as all methods."""
        return {topic for topic in self._cluster.admin.topic_names() if self.replication_policy.is_heartbeats_topic(topic)}

    def checkpoint_topics(self) -> set[str]:
        """Every topic with checkpoints."""
        return {topic for topic in self._cluster.admin.topic_names() if self.replication_policy.is_checkpoints_topic(topic)}

    def upstream_clusters(self) -> set[str]:
        """Aliases of all clusters whose heartbeats arrive here, over any number of hops."""
        return {alias for topic in self.heartbeat_topics() for alias in self._sources(topic)}

    def replication_hops(self, upstream: str) -> int:
        """The number of flows between `upstream` and this cluster on the shortest path; -1 if no heartbeat arrives from there."""
        hops = [sources.index(upstream) + 1 for topic in self.heartbeat_topics() if upstream in (sources := self._sources(topic))]
        return min(hops, default=UNREACHABLE)

    def remote_topics(self, source: str | None = None) -> set[str]:
        """Topics that are copies (of `source`, the cluster one hop away), including copies of heartbeats, without internal topics."""
        topics = {topic for topic in self._cluster.admin.topic_names() if not self.replication_policy.is_internal_topic(topic)}
        found = {topic: self.replication_policy.topic_source(topic) for topic in topics}
        return {topic for topic, origin in found.items() if origin is not None and source in {None, origin}}

    def remote_consumer_offsets(self, group: str, upstream: str, timeout: float) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets at which `group` of cluster `upstream` continues here, from the newest checkpoints; empty if it has none.

        Topics have their names on this cluster. Reading ends after `timeout` seconds, complete or not. ArgumentError: no checkpoints topic.
        """
        return self._offsets(re.compile(re.escape(group)), upstream, timeout).get(group, {})

    def remote_consumer_offsets_matching(
        self, pattern: str, upstream: str, timeout: float
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """The same for every group whose whole name matches a Java regular expression. ConfigError for one that Ferry cannot match."""
        if not pattern:
            raise ArgumentError("the group pattern is empty: give a regular expression such as .*")
        return self._offsets(java_pattern([pattern], "group pattern"), upstream, timeout)

    def _offsets(self, groups: re.Pattern[str], upstream: str, timeout: float) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        # Checkpoints are not copied, so the alias alone gives the name of their topic.
        topic = self.replication_policy.checkpoints_topic(upstream)
        where = f"cluster {self._cluster.alias}: topic {topic}"
        reader = self._cluster.reader(committed=False)
        if not reader.partitions(topic):
            raise ArgumentError(f"cluster {self._cluster.alias} has no topic {topic}: no checkpoints of {upstream} were written here")
        contents = decoded(reader.read(topic, only={PARTITION}, seconds=timeout), Checkpoint.decode, where)
        for line in contents.notices():
            _log.warning(line)
        found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        for entry in contents.records:
            if groups.fullmatch(entry.group):
                place = TopicPartition(entry.topic, entry.partition)
                found.setdefault(entry.group, {})[place] = OffsetAndMetadata(entry.downstream_offset, entry.metadata)
        return found

    def _sources(self, topic: str) -> list[str]:
        """The aliases in a name, nearest first; ends if an alias repeats, because some policies allow cycles."""
        sources: list[str] = []
        for origin in origins(self.replication_policy, topic):
            if origin in sources:
                break
            sources.append(origin)
        return sources
