"""What the brokers' configs say of topics that set nothing themselves.

Only who may describe the configs of brokers sees them (DescribeConfigs on the cluster), and a service may leave entries out. Kafka's own
defaults stand for what is hidden, and `hidden` says why.
"""

from dataclasses import dataclass

from ferry.clusters.admin import ClusterAdmin
from ferry.errors import NotAuthorized
from ferry.wire.batch import DEFAULT_BATCH_LIMIT

_LIMIT, _REPLICAS, _REMOTE_STORAGE = "message.max.bytes", "default.replication.factor", "remote.log.storage.system.enable"


@dataclass(frozen=True)
class BrokerDefaults:
    """`batch_limit` in bytes: max.message.bytes of such a topic. `hidden`: why it is not known; empty if it is.

    `remote_storage`: whether the brokers have it (KIP-405).
    """

    batch_limit: int = DEFAULT_BATCH_LIMIT
    replication_factor: int = 1
    remote_storage: bool = False
    hidden: str = ""

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
    return BrokerDefaults(limit, replicas, told.get(_REMOTE_STORAGE) == "true", hidden)
