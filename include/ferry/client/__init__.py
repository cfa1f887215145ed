"""MirrorClient and RemoteClusterUtils in Python: what MM2's Java clients tell about a cluster, from the same topics."""

from __future__ import annotations

from ferry.client.mirror_client import MirrorClient, OffsetAndMetadata
from ferry.client.remote_cluster import (
    checkpoint_topics,
    heartbeat_topics,
    replication_hops,
    translate_offsets,
    translate_offsets_matching,
    upstream_clusters,
)
from ferry.clusters.partitions import TopicPartition

__all__ = [
    "MirrorClient",
    "OffsetAndMetadata",
    "TopicPartition",
    "checkpoint_topics",
    "heartbeat_topics",
    "replication_hops",
    "translate_offsets",
    "translate_offsets_matching",
    "upstream_clusters",
]
