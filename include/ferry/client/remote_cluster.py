"""One question to one cluster of a config file: MM2's RemoteClusterUtils.

Each function connects, asks and closes; for several questions use `connect`. `config`: an mm2.properties file, or the result of
`load_config`. `cluster`: the alias of the cluster to ask, normally a target. The policy of a flow into that cluster (from `upstream`, if
there is one) interprets names; without a flow the top-level policy does. Errors as in MirrorClient; ArgumentError for an unknown alias.
"""

from dataclasses import replace
from pathlib import Path

from ferry.client.mirror_client import MirrorClient, OffsetAndMetadata
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import FerryConfig, load_config
from ferry.config.keys import nearest_name
from ferry.errors import ArgumentError
from ferry.policy.naming import IdentityReplicationPolicy

Configuration = FerryConfig | Path | str


def connect(config: Configuration, cluster: str, upstream: str | None = None) -> MirrorClient:
    """A client of `cluster`; close it, or use it as a context manager."""
    loaded = config if isinstance(config, FerryConfig) else load_config(config)
    if cluster not in loaded.clusters:
        hint = nearest_name(cluster, loaded.clusters)
        raise ArgumentError(f"{loaded.path}: there is no cluster {cluster}; clusters: {', '.join(loaded.clusters)}{hint}")
    flows = [flow for flow in loaded.flows if flow.target.alias == cluster]
    flows.sort(key=lambda flow: flow.source.alias != upstream)
    if flows:
        return MirrorClient(flows[0].target, flows[0].policy)
    policy = loaded.top_level[cluster].policy
    if isinstance(policy, IdentityReplicationPolicy):
        policy = replace(policy, source_alias=None)  # nothing is copied here, so no alias is the source of every topic
    return MirrorClient(loaded.clusters[cluster], policy)


def replication_hops(config: Configuration, cluster: str, upstream: str) -> int:
    """The number of flows between `upstream` and `cluster`; -1 if there is no path."""
    with connect(config, cluster, upstream) as client:
        return client.replication_hops(upstream)


def heartbeat_topics(config: Configuration, cluster: str) -> set[str]:
    """Every topic of `cluster` with heartbeats."""
    with connect(config, cluster) as client:
        return client.heartbeat_topics()


def checkpoint_topics(config: Configuration, cluster: str) -> set[str]:
    """Every topic of `cluster` with checkpoints."""
    with connect(config, cluster) as client:
        return client.checkpoint_topics()


def upstream_clusters(config: Configuration, cluster: str) -> set[str]:
    """Aliases of the clusters whose heartbeats arrive at `cluster`."""
    with connect(config, cluster) as client:
        return client.upstream_clusters()


def translate_offsets(
    config: Configuration, cluster: str, upstream: str, group: str, timeout: float
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Where `group` of `upstream` continues at `cluster`, by the newest checkpoints; reads for at most `timeout` seconds."""
    with connect(config, cluster, upstream) as client:
        return client.remote_consumer_offsets(group, upstream, timeout)


def translate_offsets_matching(
    config: Configuration, cluster: str, upstream: str, pattern: str, timeout: float
) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
    """The same for every group whose whole name matches a Java regular expression."""
    with connect(config, cluster, upstream) as client:
        return client.remote_consumer_offsets_matching(pattern, upstream, timeout)
