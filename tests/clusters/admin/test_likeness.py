"""Whether two aliases are one cluster where ids do not say it: clusters with one id, one with two listeners, one that tells no id."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient
from tests.conftest import Lab
from tests.opened import administration, plan_run, read_cluster_facts, read_flow_facts
from tests.proxied import proxied_cluster
from tools.kafka import SandboxCluster, read_all
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.service import WITHOUT_TOPIC_IDS, Service

from ferry.clusters.admin.likeness import Likeness, likeness
from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import ConfigError
from ferry.ledger.run_report import RunReport
from ferry.sandbox.server_properties import new_cluster_id

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
Make = Callable[..., str]
IDENTITY = "replication.policy.class = IdentityReplicationPolicy"


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, SandboxCluster]]:
    """Two clusters that were formatted with one id."""
    directory, identity = tmp_path_factory.mktemp("twins"), new_cluster_id()
    with (
        SandboxCluster.start(directory / "one", "one", cluster_id=identity) as one,
        SandboxCluster.start(directory / "two", "two", cluster_id=identity) as two,
    ):
        yield one, two


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    """A cluster with two listeners, and the proxy before the second one."""
    with proxied_cluster(tmp_path_factory.mktemp("listeners")) as pair:
        yield pair


def of(flow: Flow) -> Likeness | None:
    with administration(flow.source) as source, administration(flow.target) as target:
        return likeness(source, target)


@pytest.mark.long
def test_two_clusters_with_one_id(
    twins: tuple[SandboxCluster, SandboxCluster],
    flow_factory: FlowFactory,
    topic_factory: Make,
    produce: Callable[..., None],
    run_flow: Callable[..., RunReport],
) -> None:
    one, two = twins
    name = f"t-{secrets.token_hex(4)}"
    flow = flow_factory(IDENTITY, f"A->B.topics = {name}", source=one, target=two)
    if not AdminClient(one.client_settings()).list_topics(timeout=10).topics:  # nothing is there that could tell them apart
        with pytest.raises(ConfigError, match=r"cannot be told apart: both have cluster id .*create a topic on the source"):
            plan_run(flow, RunRequest(flow.name, "look"))
    topic_factory(one, name=name)
    produce(one, name, [(0, b"key", b"value")] * 3)
    found = of(flow)
    assert found is not None
    assert (found.same, f"only {flow.source.alias} has topic {name}" in found.why) == (False, True)
    report = run_flow(flow)
    assert (report.records, [notice for notice in report.notices if "are two clusters" in notice]) == (3, [found.why])
    assert [len(records) for records in read_all(two.client_settings(), name)] == [3]

    again = of(flow)  # now both have the topic
    assert again is not None
    assert (again.same, f"topic {name} has another id on each" in again.why) == (False, True)
    assert run_flow(flow).records == 0
    facts = read_flow_facts(flow, read_cluster_facts(flow.source), read_cluster_facts(flow.target))
    assert facts.alike == again


def test_one_cluster_with_two_listeners(
    proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory, topic_factory: Make
) -> None:
    """It advertises another address on each."""
    cluster, proxy = proxied
    flow = flow_factory(f"B.bootstrap.servers = {proxy.bootstrap}", source=cluster, target=cluster)
    with administration(flow.source) as source, administration(flow.target) as target:
        assert source.addresses().isdisjoint(target.addresses())
    topic = topic_factory(cluster)
    with pytest.raises(ConfigError, match=rf"are the same cluster: topic {topic} has the same id on both; correct bootstrap.servers"):
        plan_run(flow, RunRequest(flow.name, "look"))
    for service in (Service(cluster_id=None), Service(newest=WITHOUT_TOPIC_IDS)):
        proxy.service = service
        try:
            found = of(flow_factory(f"B.bootstrap.servers = {proxy.bootstrap}", source=cluster, target=cluster))
        finally:
            proxy.service = None
        assert found is not None
        assert found.same, found


def test_a_cluster_that_tells_no_id(proxied: tuple[SandboxCluster, BrokerProxy], lab: Lab) -> None:
    cluster, proxy = proxied
    topic = lab.topic(cluster)
    proxy.service = Service(cluster_id=None)
    try:
        flow = lab.flow(f"A.bootstrap.servers = {proxy.bootstrap}", source=cluster, target=lab.target)
        found = of(flow)
        facts = read_cluster_facts(flow.source)
    finally:
        proxy.service = None
    assert found is not None
    assert (found.same, "are two clusters, though not both have a cluster id" in found.why) == (False, True)
    assert (facts.cluster_id, topic != "") == ("", True)


def test_clusters_with_different_ids(lab: Lab) -> None:
    assert of(lab.flow(source=lab.source, target=lab.target)) is None


def test_the_same_servers_by_another_name(lab: Lab) -> None:
    port = lab.source.bootstrap.rpartition(":")[2]
    found = of(lab.flow(f"B.bootstrap.servers = localhost:{port}", source=lab.source, target=lab.source))
    assert found is not None
    assert (found.same, found.why.endswith(f"both have the broker {lab.source.bootstrap}")) == (True, True)
