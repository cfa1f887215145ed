"""The replication factors in the config, for each kind of topic that Ferry creates."""

from typing import NamedTuple

REMOTE_TOPICS = "replication.factor"
OWN_TOPICS = "ferry.internal.topics.replication.factor"
HEARTBEATS = "heartbeats.topic.replication.factor"
CHECKPOINTS = "checkpoints.topic.replication.factor"
OFFSET_SYNCS = "offset-syncs.topic.replication.factor"
REPLICA_KEYS = (REMOTE_TOPICS, OWN_TOPICS, HEARTBEATS, CHECKPOINTS, OFFSET_SYNCS)


class WantedReplicas(NamedTuple):
    """`factor`: the value of property `key` (-1: the broker's default). `given`: the file sets it; otherwise it is Ferry's default."""

    key: str
    factor: int
    given: bool

    def on(self, brokers: int, broker_default: int = 1) -> int:
        """The number to ask for in a cluster with so many brokers, including those that are down. Only a default is lowered."""
        if self.factor < 0:
            return broker_default
        return self.factor if self.given else min(self.factor, max(brokers, broker_default))
