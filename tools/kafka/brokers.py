"""Clusters of several brokers on 127.0.0.1: topics with replicas, leaders that move, brokers that come and go.

The first brokers are controllers as well and vote (a static quorum: two of three must live); brokers that join later are brokers only. Each
is a SandboxCluster of its own directory, so it is killed, paused, stopped and started again as that is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tools.kafka.cluster import SandboxCluster

from ferry.sandbox.broker_process import SandboxFailed
from ferry.sandbox.jars import KAFKA_VERSION
from ferry.sandbox.ports import free_ports
from ferry.sandbox.server_properties import new_cluster_id

# Several share a machine that other work needs too.
JAVA_OPTIONS = ("-Xms128m", "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Replicas that never catch up are a finding; a loaded machine needs its time.
SYNC_SECONDS = 120.0
ANSWER_SECONDS = 10.0
POLL_SECONDS = 0.2
Each = Callable[[int], Mapping[str, str]]


@dataclass
class SandboxBrokers:
    """A running cluster; `nodes` by node id, running or not."""

    name: str
    directory: Path
    voters: str
    cluster_id: str
    replicas: int
    each: Each
    java_options: Sequence[str] = JAVA_OPTIONS
    version: str = KAFKA_VERSION
    nodes: dict[int, SandboxCluster] = field(default_factory=dict)

    @classmethod
    def start(
        cls,
        directory: Path,
        name: str,
        *,
        brokers: int = 3,
        each: Each = lambda _: {},
        java_options: Sequence[str] = JAVA_OPTIONS,
        version: str = KAFKA_VERSION,
    ) -> SandboxBrokers:
        """Format and start `brokers` nodes, all at once; returns when all take part. SandboxFailed otherwise, and no process stays.

        Internal topics get a replica on each of up to three brokers, and two of three must acknowledge.
        each: node id → broker properties that come on top. version: the release of Kafka, one with KRaft.
        """
        ports = free_ports(2 * brokers)
        pairs = {node: (ports[2 * node - 2], ports[2 * node - 1]) for node in range(1, brokers + 1)}
        voters = ",".join(f"{node}@127.0.0.1:{controller}" for node, (_, controller) in pairs.items())
        cluster = cls(name, directory.resolve(), voters, new_cluster_id(), min(brokers, 3), each, java_options, version)
        with ThreadPoolExecutor(brokers) as pool:
            starting = {node: pool.submit(cluster._start, node, pair, "broker,controller") for node, pair in pairs.items()}
        cluster.nodes = {node: future.result() for node, future in starting.items() if future.exception() is None}
        failed = next((error for future in starting.values() if (error := future.exception())), None)
        if failed is not None:
            cluster.stop()
            raise failed
        return cluster

    @property
    def bootstrap(self) -> str:
        """Addresses for clients: of all nodes, whether they run or not."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    def client_settings(self) -> dict[str, str]:
        """librdkafka settings that reach it."""
        return {"bootstrap.servers": self.bootstrap}

    def add(self) -> SandboxCluster:
        """One more broker, without partitions until some are assigned to it."""
        node = max(self.nodes) + 1
        first, second = free_ports(2)
        self.nodes[node] = self._start(node, (first, second), "broker")
        return self.nodes[node]

    def wait_until_in_sync(self, seconds: float = SYNC_SECONDS) -> float:
        """Return once every replica of every partition is in sync; how long that took. SandboxFailed naming one that is not."""
        started = time.monotonic()
        lagging = "no broker answers"
        while (passed := time.monotonic() - started) < seconds:
            found = self._out_of_sync()
            if not found:
                return passed
            lagging = found[0]
            time.sleep(POLL_SECONDS)
        raise SandboxFailed(f"cluster {self.name}: replicas are not in sync after {seconds:.0f} s: {lagging}")

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition, by node id; -1 for none."""
        client = AdminClient({**self.client_settings(), "log_level": 0})
        listed = client.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions
        return {number: partition.leader for number, partition in listed.items()}

    def stop(self) -> None:
        """End all nodes at once, by SIGKILL: the last of a quorum could not shut down in order."""
        for node in self.nodes.values():
            node.kill()

    def __enter__(self) -> SandboxBrokers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, node: int, ports: tuple[int, int], roles: str) -> SandboxCluster:
        alive = str(min(2, self.replicas))
        properties = {
            "node.id": str(node),
            "process.roles": roles,
            "controller.quorum.voters": self.voters,
            "default.replication.factor": str(self.replicas),
            "min.insync.replicas": alive,
            "offsets.topic.replication.factor": str(self.replicas),
            "transaction.state.log.replication.factor": str(self.replicas),
            "transaction.state.log.min.isr": alive,
            "share.coordinator.state.topic.replication.factor": str(self.replicas),
            "share.coordinator.state.topic.min.isr": alive,
        }
        if "controller" not in roles:
            address = f"PLAINTEXT://127.0.0.1:{ports[0]}"
            properties |= {"listeners": address, "advertised.listeners": address}
        return SandboxCluster.start(
            self.directory / str(node),
            f"{self.name}{node}",
            properties=properties | dict(self.each(node)),
            java_options=self.java_options,
            ports=ports,
            cluster_id=self.cluster_id,
            version=self.version,
        )

    def _out_of_sync(self) -> list[str]:
        client = AdminClient({**self.client_settings(), "log_level": 0})
        try:
            topics = client.list_topics(timeout=ANSWER_SECONDS).topics
        except KafkaException:
            return ["no broker answers"]
        return [
            f"{topic}-{number}: {sorted(partition.isrs)} of {sorted(partition.replicas)}"
            for topic, listed in topics.items()
            for number, partition in listed.partitions.items()
            if len(partition.isrs) < len(partition.replicas) or partition.leader < 0
        ]
