"""The brokers' defaults for topics that set nothing themselves.

A user sees them only with DescribeConfigs on the cluster, and a service may leave entries out. Then Ferry takes Kafka's own defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.errors import NotAuthorized
from ferry.wire.batch import DEFAULT_BATCH_LIMIT

_LIMIT, _REPLICAS, _REMOTE_STORAGE = "message.max.bytes", "default.replication.factor", "remote.log.storage.system.enable"
# By topic config: the broker config of the same meaning (ServerTopicConfigSynonyms).
_SYNONYMS = {
    "cleanup.policy": "log.cleanup.policy",
    "max.message.bytes": _LIMIT,
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "retention.bytes": "log.retention.bytes",
}
# The first one that is set counts. In ms.
_RETENTION = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}


@dataclass(frozen=True)
class BrokerDefaults:
    """The brokers' defaults for a topic that sets nothing itself."""

    batch_limit: int = DEFAULT_BATCH_LIMIT  # max.message.bytes, in bytes
    replication_factor: int = 1
    remote_storage: bool = False  # whether the brokers have it (KIP-405)
    hidden: str = ""  # why `batch_limit` is not known; empty if it is
    topics: Mapping[str, str] = field(default_factory=dict)  # further defaults, by topic config, as far as the broker gives them

    @property
    def assumed(self) -> str:
        """What Ferry does about `hidden`, for people."""
        return self.hidden and f"{self.hidden}: Ferry assumes Kafka's default of {self.batch_limit:,} bytes for new remote topics"


def broker_defaults(cluster: ClusterAdmin) -> BrokerDefaults:
    """Asks one broker. ClusterUnreachable if none answers."""
    try:
        told = {name: entry.value for name, entry in cluster.broker_configs().items() if entry.value}
    except NotAuthorized as problem:
        return BrokerDefaults(hidden=str(problem))
    hidden = "" if _LIMIT in told else f"the brokers of {cluster.alias} do not tell their {_LIMIT}"
    limit, replicas = int(told.get(_LIMIT, DEFAULT_BATCH_LIMIT)), int(told.get(_REPLICAS, 1))
    return BrokerDefaults(limit, replicas, told.get(_REMOTE_STORAGE) == "true", hidden, topic_defaults(told))


def topic_defaults(told: Mapping[str, str]) -> dict[str, str]:
    """The configs of a topic that sets nothing itself. `told`: a broker's own configs (pure)."""
    found = {name: told[synonym] for name, synonym in _SYNONYMS.items() if synonym in told}
    retention = next((int(told[name]) * unit for name, unit in _RETENTION.items() if name in told), None)
    return found if retention is None else found | {"retention.ms": str(max(retention, -1))}
