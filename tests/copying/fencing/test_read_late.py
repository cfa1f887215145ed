"""A broker reads a request of a run late: after the run gave up waiting for the answer, asked again, and went on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.opened import fenced_writer
from tests.proxied import proxied_cluster
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.rules import INIT_PRODUCER_ID, Action, Rule

from ferry.clusters.net import connections
from ferry.config import Flow
from ferry.copying.fencing import FencedWriter
from ferry.errors import FenceLost, Superseded

pytestmark = pytest.mark.brokers


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    with proxied_cluster(tmp_path / "target") as both:
        yield both


def _fenced(writer: FencedWriter) -> bool:
    try:
        writer.confirm()
    except FenceLost:
        return True
    return False


def test_a_request_that_is_read_late_fences_the_run_that_sent_it(
    proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so. If another one has taken the id since, it says that."""
    monkeypatch.setattr(connections, "REQUEST_MILLISECONDS", 1_000)
    cluster, proxy = proxied
    through = flow_factory("A->B.topics = x", target=proxy)
    name = through.transactional_id("run")
    late = proxy.add(Rule(INIT_PRODUCER_ID, Action.DELAY_REQUEST, seconds=5.0, containing=name.encode()))
    with fenced_writer(through, name) as writer:
        assert late.hits == 1
        writer.confirm()
        until(lambda: _fenced(writer))
        with pytest.raises(FenceLost, match=f"nobody else has taken {name}"):
            writer.confirm()
        with fenced_writer(flow_factory("A->B.topics = x", target=cluster), name) as newer:
            with pytest.raises(Superseded):
                writer.confirm()
            newer.confirm()
