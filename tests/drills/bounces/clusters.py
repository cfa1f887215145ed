"""Clusters of three brokers, each broker behind a proxy: Ferry comes by the proxies, feeders and watchers do not."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import SandboxBrokers
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.listener import proxied_properties
from tools.proxy.rules import Link

from ferry.sandbox.jars import KAFKA_VERSION
from ferry.sandbox.ports import free_ports

CREATE_SECONDS = 60


class ProxiedBrokers:
    """`nodes` 1…n of a running cluster and the proxy of each, also of the `spare` brokers that may join."""

    def __init__(
        self, directory: Path, name: str, brokers: int = 3, seed: int = 0, *, spare: int = 1, version: str = KAFKA_VERSION
    ) -> None:
        self._directory, self._name, self._brokers, self._seed, self._version = directory, name, brokers, seed, version
        self._running = ExitStack()
        self._ports = {node: tuple(free_ports(2)) for node in range(1, brokers + spare + 1)}
        self.proxies: dict[int, BrokerProxy] = {}

    def __enter__(self) -> ProxiedBrokers:
        with ExitStack() as starting:
            for node, (behind, advertised) in self._ports.items():
                self.proxies[node] = starting.enter_context(BrokerProxy(behind, advertised, self._seed + node))
            self.cluster = starting.enter_context(
                SandboxBrokers.start(
                    self._directory,
                    self._name,
                    brokers=self._brokers,
                    each=self._properties,
                    version=self._version,
                )
            )
            self._running = starting.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._running.close()

    @property
    def bootstrap(self) -> str:
        """For feeders, watchers and the test."""
        return self.cluster.bootstrap

    @property
    def proxied(self) -> str:
        """For Ferry."""
        return ",".join(self.proxies[node].bootstrap for node in self.cluster.nodes)

    def _properties(self, node: int) -> dict[str, str]:
        behind, advertised = self._ports[node]
        return {**proxied_properties(behind, advertised, controller=node <= self._brokers), "log.retention.ms": "-1"}

    def set_link(self, link: Link, *nodes: int) -> None:
        """Of these brokers' proxies, or of all."""
        for node in nodes or self.proxies:
            self.proxies[node].link = link

    def create(self, topic: str, partitions: int) -> None:
        """With a replica on each of three brokers, of which two must acknowledge."""
        admin = AdminClient(self.cluster.client_settings())
        replicas = min(3, self._brokers)
        wanted = NewTopic(topic, partitions, replicas, config={"min.insync.replicas": str(min(2, replicas))})
        admin.create_topics([wanted])[topic].result(CREATE_SECONDS)
        self.cluster.wait_until_in_sync()
