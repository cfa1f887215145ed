"""Both clusters, each also reachable through a proxy that can delay what passes, and counts requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.kafka import SandboxCluster
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.listener import proxied_properties

from benchmarks.flow import Clusters
from benchmarks.run import BROKER_JAVA
from ferry.sandbox.ports import free_ports


@dataclass(frozen=True)
class Proxied:
    """A cluster and its proxy."""

    cluster: SandboxCluster
    proxy: BrokerProxy

    def bootstrap(self, *, proxied: bool) -> str:
        """The way through the proxy, or the direct one."""
        return self.proxy.bootstrap if proxied else self.cluster.bootstrap


@dataclass(frozen=True)
class ProxiedClusters:
    source: Proxied
    target: Proxied

    def clusters(self, *sides: str) -> Clusters:
        """As who goes through the proxies of these sides sees them."""
        return Clusters(self.source.bootstrap(proxied="source" in sides), self.target.bootstrap(proxied="target" in sides))


@contextmanager
def proxied_clusters(directory: Path) -> Iterator[ProxiedClusters]:
    """One broker each, with data below `directory`."""
    with ExitStack() as scope:

        def start(name: str) -> Proxied:
            behind, front = free_ports(2)
            properties = proxied_properties(behind, front)
            cluster = SandboxCluster.start(directory / name, name, properties=properties, java_options=BROKER_JAVA)
            return Proxied(scope.enter_context(cluster), scope.enter_context(BrokerProxy(behind, front)))

        yield ProxiedClusters(start("source"), start("target"))
