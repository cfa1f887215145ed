"""How many replicas the config wants for each kind of topic that Ferry creates."""

from __future__ import annotations

from typing import NamedTuple

REMOTE_TOPICS = "replication.factor"
OWN_TOPICS = "ferry.internal.topics.replication.factor"
HEARTBEATS = "heartbeats.topic.replication.factor"
CHECKPOINTS = "checkpoints.topic.replication.factor"
OFFSET_SYNCS = "offset-syncs.topic.replication.factor"
REPLICA_KEYS = (REMOTE_TOPICS, OWN_TOPICS, HEARTBEATS, CHECKPOINTS, OFFSET_SYNCS)


class WantedReplicas(NamedTuple):
    """`factor`: the value of the property `key` (-1: the broker's default). `given`: the config file sets it; else it is Ferry's own."""

    key: str
    factor: int
    given: bool

    def on(self, brokers: int, broker_default: int = 1) -> int:
        """The number to ask for where a cluster has so many brokers, those that are down included. Only a default is lowered to fit."""
        if self.factor < 0:
            return broker_default
        return self.factor if self.given else min(self.factor, max(brokers, broker_default))
