"""MirrorMaker 2's MirrorClient and RemoteClusterUtils in Python, for programs of users.

Knows `clusters`, `config`, `policy`, `syncs` and `wire`.
Begin with `mirror_client.py`.
"""

from ferry.client.mirror_client import MirrorClient, OffsetAndMetadata
from ferry.client.remote_cluster import (
    checkpoint_topics,
    heartbeat_topics,
    replication_hops,
    translate_offsets,
    translate_offsets_matching,
    upstream_clusters,
)
from ferry.clusters.net.partitions import TopicPartition

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
