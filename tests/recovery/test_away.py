"""Whether a cluster answers is asked anew each time, also where a command has a connection to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tools.kafka import SandboxCluster

from ferry.clusters.net.client_cache import kept_clients
from ferry.config import Flow
from ferry.recovery.readings import cluster_id_of, is_away


@pytest.mark.brokers
@pytest.mark.long
def test_a_cluster_that_went_away_within_a_command(
    cluster_factory: Callable[..., SandboxCluster], flow_factory: Callable[..., Flow]
) -> None:
    source = cluster_factory()
    flow = flow_factory(source=source)
    with kept_clients():
        assert cluster_id_of(flow.source)
        assert is_away(flow.source) == ""
        source.kill()
        assert flow.source.bootstrap in is_away(flow.source)
        source.run()
        assert is_away(flow.source) == "", "the connections that broke say nothing"
