"""One round's flow: aliases that no other round had, so that remote names, offsets, groups and ledgers are new and nothing is left over."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from benchmarks.topics import Partition, Topics

REPLICATION_FACTORS = {
    "replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
}


@dataclass(frozen=True)
class Clusters:
    """Bootstrap servers of the two clusters, of one broker each."""

    source: str
    target: str


@dataclass(frozen=True)
class Flow:
    """Copies `topics`, all of them with `partitions` partitions."""

    clusters: Clusters
    topics: tuple[str, ...]
    partitions: int
    mark: str

    @classmethod
    def fresh(cls, clusters: Clusters, topics: tuple[str, ...], partitions: int) -> Flow:
        """A flow whose aliases nobody used before."""
        return cls(clusters, topics, partitions, uuid.uuid4().hex[:10])

    @property
    def source_alias(self) -> str:
        return f"from{self.mark}"

    @property
    def target_alias(self) -> str:
        return f"to{self.mark}"

    @property
    def name(self) -> str:
        return f"{self.source_alias}->{self.target_alias}"

    @property
    def remote_partitions(self) -> list[Partition]:
        """Where the records must arrive."""
        return [(f"{self.source_alias}.{topic}", number) for topic in self.topics for number in range(self.partitions)]

    def settings(self) -> dict[str, str]:
        """The part of mm2.properties that both copiers are given."""
        return {
            "clusters": f"{self.source_alias}, {self.target_alias}",
            f"{self.source_alias}.bootstrap.servers": self.clusters.source,
            f"{self.target_alias}.bootstrap.servers": self.clusters.target,
            f"{self.name}.enabled": "true",
            f"{self.name}.topics": ",".join(re.escape(topic) for topic in self.topics),
            **REPLICATION_FACTORS,
        }

    def remove(self) -> None:
        """Remove every topic of this round, internal ones too, from both clusters."""
        for bootstrap in (self.clusters.source, self.clusters.target):
            topics = Topics(bootstrap)
            topics.delete([name for name in topics.names() if self.mark in name])
