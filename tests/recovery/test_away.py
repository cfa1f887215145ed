"""Whether a cluster answers is asked anew each time, also where a command has a connection to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tools.kafka import SandboxCluster

from ferry.clusters.open_cluster import open_cluster
from ferry.config import Flow
from ferry.recovery.readings import is_away


@pytest.mark.brokers
@pytest.mark.long
def test_a_cluster_that_went_away_within_a_command(
    cluster_factory: Callable[..., SandboxCluster], flow_factory: Callable[..., Flow]
) -> None:
    source = cluster_factory()
    flow = flow_factory(source=source)
    with open_cluster(flow.source) as opened:
        assert opened.admin.cluster_id()
        assert is_away(opened) == ""
        source.kill()
        assert flow.source.bootstrap in is_away(opened)
        source.run()
        assert is_away(opened) == "", "the connections that broke say nothing"
