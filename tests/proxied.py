"""One cluster, and a proxy before its second listener."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.listener import proxied_properties

from ferry.sandbox.ports import free_ports


@contextmanager
def proxied_cluster(directory: Path, **options: Any) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    """Both, once the broker answers. `options`: of the proxy."""
    behind, advertised = free_ports(2)
    with (
        SandboxCluster.start(directory, "proxied", properties=proxied_properties(behind, advertised)) as cluster,
        BrokerProxy(behind, advertised, **options) as proxy,
    ):
        until(lambda: len(AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=10).brokers) == 1)
        yield cluster, proxy
