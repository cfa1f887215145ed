"""A cluster, and the proxy that plays a service before its second listener."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient
from tests.both_clusters import FOREVER
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.listener import proxied_properties
from tools.proxy.service import Service

from ferry.sandbox.ports import free_ports


@contextmanager
def behind_a_proxy(directory: Path) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    behind, advertised = free_ports(2)
    properties = FOREVER | proxied_properties(behind, advertised)
    with SandboxCluster.start(directory, "service", properties=properties) as cluster, BrokerProxy(behind, advertised) as proxy:
        until(lambda: len(AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=10).brokers) == 1)
        yield cluster, proxy


@contextmanager
def playing(proxy: BrokerProxy, **service: object) -> Iterator[None]:
    """The proxy plays a Service with these fields meanwhile."""
    proxy.service = Service(**service)  # type: ignore[arg-type] - the caller knows the fields
    try:
        yield
    finally:
        proxy.service = None
