"""What becomes of configs and replication factors that a cluster refuses. A proxy refuses them before a real broker."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType
from tests.behind_a_proxy import behind_a_proxy, playing
from tests.conftest import Lab
from tests.opened import administration, plan_run
from tools.kafka import SandboxCluster
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.rules import CREATE_TOPICS, DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, Action, Rule
from tools.proxy.service import NOT_OFFERED

from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.creation import create_topics
from ferry.clusters.admin.describe import WantedTopic
from ferry.clusters.admin.replication import replicas_for, wait_for_leaders, with_key
from ferry.clusters.net.error_codes import CODES
from ferry.clusters.net.outage import PATIENCE_SECONDS
from ferry.config import Flow
from ferry.config.settings import WantedReplicas
from ferry.copying.request import RunRequest
from ferry.errors import ChangeRefused, ClusterUnreachable, ConfigError, TooFewBrokers
from ferry.ledger.topics import ensure_internal_topics

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
POLICY = {"cleanup.policy": "compact"}


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, BrokerProxy]]:
    with behind_a_proxy(tmp_path_factory.mktemp("refusing")) as both:
        yield both


@contextmanager
def refusing(
    proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory, **service: object
) -> Iterator[tuple[Flow, ClusterAdmin]]:
    """A flow to the service, and its target's administration."""
    _, proxy = proxied
    flow = flow_factory("A->B.topics = none", target=proxy)
    with playing(proxy, **service), administration(flow.target) as target:
        yield flow, target


def own_configs(cluster: SandboxCluster, *topics: str) -> dict[str, dict[str, str | None]]:
    """What each topic itself sets."""
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    client = AdminClient(cluster.client_settings())
    answers = client.describe_configs(resources)
    return {
        resource.name: {
            name: entry.value for name, entry in answer.result(30).items() if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        }
        for resource, answer in answers.items()
    }


def test_a_plan_says_that_the_cluster_made_the_topics_that_it_was_asked_about(
    proxied: tuple[SandboxCluster, BrokerProxy], lab: Lab
) -> None:
    behind, proxy = proxied
    topic = lab.topic(lab.source)
    flow = lab.flow(f"A->B.topics = {topic}", *lab.copy_only, target=proxy)
    remote = f"{flow.source.alias}.{topic}"

    def told() -> list[str]:
        return [notice for notice in plan_run(flow, RunRequest(flow.name, "run")).notices if "validate_only" in notice]

    with playing(proxy):
        assert told() == []

    def ignore(request: Any) -> None:
        request.validate_only = False

    with playing(proxy, asked={CREATE_TOPICS: ignore}):
        (notice,) = told()
        assert f"now has {remote}, though Ferry only asked what it would create" in notice
        assert remote in AdminClient(behind.client_settings()).list_topics(timeout=10).topics
        assert told() == []


def test_a_request_at_which_the_cluster_closes_the_connection_is_named(
    proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory
) -> None:
    with refusing(proxied, flow_factory) as (_, target):
        rule = proxied[1].add(Rule(DESCRIBE_CONFIGS, Action.CUT_BEFORE, times=None))
        begun = time.monotonic()
        try:
            with pytest.raises(
                ClusterUnreachable, match=r"answers other requests, but closes the connection at this one: .*DescribeConfigs"
            ):
                target.topic_configs(["any"])
        finally:
            proxied[1].remove(rule)
        assert time.monotonic() - begun < PATIENCE_SECONDS / 2


@pytest.mark.parametrize("code", ["INVALID_CONFIG", "POLICY_VIOLATION"])
def test_own_topics_are_created_with_their_cleanup_policy_alone(
    code: str, proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory
) -> None:
    with refusing(proxied, flow_factory, topic_configs=frozenset(POLICY), config_error=CODES[code]) as (flow, target):
        created = ensure_internal_topics(flow, target)
        assert set(created) == {flow.ledger_topic, flow.state_topic, flow.runs_topic}
        assert ensure_internal_topics(flow, target) == ()
    found = own_configs(proxied[0], *created)
    assert found == {flow.ledger_topic: POLICY, flow.state_topic: POLICY, flow.runs_topic: {"cleanup.policy": "delete"}}


def test_own_topics_keep_the_configs_that_are_taken(proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory) -> None:
    allowed = frozenset({"cleanup.policy", "segment.ms", "retention.ms"})
    with refusing(proxied, flow_factory, topic_configs=allowed) as (flow, target):
        created = ensure_internal_topics(flow, target)
    found = own_configs(proxied[0], *created)
    assert found[flow.ledger_topic] == POLICY | {"segment.ms": "21600000"}
    assert set(found[flow.runs_topic]) == {"cleanup.policy", "retention.ms"}


def test_own_topics_of_a_cluster_that_does_not_compact_are_not_created(
    proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory
) -> None:
    with refusing(proxied, flow_factory, topic_configs=frozenset()) as (flow, target):
        with pytest.raises(ConfigError, match=r"create the topic beforehand, with cleanup\.policy=compact and partitions: \d"):
            ensure_internal_topics(flow, target)
        assert not target.topics([flow.ledger_topic, flow.state_topic, flow.runs_topic])


def test_refused_configs_are_named_and_the_others_are_set(proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory) -> None:
    plain, odd, hopeless = (f"t-{secrets.token_hex(4)}" for _ in range(3))
    more = {"retention.ms": "99000", "segment.bytes": "5242880", "flush.ms": "77"}
    allowed = frozenset({"cleanup.policy", "retention.ms"})
    wanted = [
        WantedTopic(plain, 1, 1, POLICY),
        WantedTopic(odd, 2, 1, POLICY, optional=more),
        WantedTopic(hopeless, 1, 1, {"flush.messages": "5"}, optional=more),
    ]
    with refusing(proxied, flow_factory, topic_configs=allowed) as (_, target):
        would = create_topics(target, wanted, dry_run=True)
        assert not target.topics([plain, odd])
        done = create_topics(target, wanted)
        wait_for_leaders(target, {plain: 1, odd: 2}, lambda _: "Describe")  # the broker learns of them after the controller
        assert set(target.topics([plain, odd, hopeless])) == {plain, odd}
    assert {name: set(reasons) for name, reasons in done.left_out.items()} == {odd: {"segment.bytes", "flush.ms"}}
    assert "cannot be set: flush.ms" in done.left_out[odd]["flush.ms"]
    assert set(would.problems) == set(done.problems) == {hopeless}
    assert would.left_out == done.left_out
    assert own_configs(proxied[0], odd) == {odd: POLICY | {"retention.ms": "99000"}}


def test_entries_that_a_cluster_takes_alone_but_not_together(
    proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory
) -> None:
    """Kafka itself wants the lag of compaction to be possible."""
    topic = f"t-{secrets.token_hex(4)}"
    more = {"min.compaction.lag.ms": "9000", "max.compaction.lag.ms": "5000"}
    with refusing(proxied, flow_factory) as (_, target):
        done = create_topics(target, [WantedTopic(topic, 1, 1, POLICY, optional=more)])
    assert (done.problems, set(done.left_out[topic])) == ({}, set(more))
    assert own_configs(proxied[0], topic) == {topic: POLICY}


@pytest.mark.parametrize(
    ("factors", "factor", "given", "asked"),
    [
        ({-1}, 3, False, -1),
        ({-1, 3}, 2, False, -1),
        ({-1, 3}, 3, False, 3),
        ({-1, 3}, 1, True, -1),  # the brokers' default is as many
        ({-1, 3}, 2, True, 2),  # the default is less
        ({-1, 3}, -1, True, -1),
        (None, 3, False, 1),
    ],
)
def test_a_cluster_that_enforces_its_own_number_of_replicas(
    factors: set[int] | None,
    factor: int,
    given: bool,
    asked: int,
    proxied: tuple[SandboxCluster, BrokerProxy],
    flow_factory: FlowFactory,
) -> None:
    wanted = WantedReplicas("replication.factor", factor, given)
    with refusing(proxied, flow_factory, factors=factors and frozenset(factors)) as (_, target):
        assert replicas_for(wanted, target, [f"t-{secrets.token_hex(4)}"]) == asked


def test_a_number_that_the_cluster_refuses_is_named_with_its_key(
    proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory
) -> None:
    wanted = WantedReplicas("replication.factor", 1, given=True)
    with refusing(proxied, flow_factory, factors=frozenset({3})) as (_, target):
        (problem,) = target.create_topics([WantedTopic("thin", 1, 1)]).values()
        told = with_key(problem, wanted, target)
    assert isinstance(told, TooFewBrokers)
    assert "has 1 broker up" in str(told)
    assert "replication.factor=-1 leaves the number to the brokers" in str(told)


@pytest.mark.parametrize("newest", [{}, {INCREMENTAL_ALTER_CONFIGS: NOT_OFFERED}], ids=["one by one", "all at once"])
def test_entries_are_changed_and_the_others_stay(
    newest: dict[int, int], proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory
) -> None:
    """A cluster without IncrementalAlterConfigs replaces the whole config of a topic."""
    topic, other = (f"t-{secrets.token_hex(4)}" for _ in range(2))
    before = {"retention.ms": "99000", "flush.ms": "77", "segment.bytes": "5242880"}
    with refusing(proxied, flow_factory, newest=newest) as (flow, target), administration(flow.target) as changing:
        target.create_topics([WantedTopic(name, 1, 1, before) for name in (topic, other)])
        changes = {topic: {"retention.ms": "98000", "flush.ms": None, "flush.messages": "5"}, other: {"segment.bytes": "no number"}}
        problems = changing.alter_topic_configs(changes)
    assert [(name, type(problem)) for name, problem in problems.items()] == [(other, ChangeRefused)]
    after = {"retention.ms": "98000", "flush.messages": "5", "segment.bytes": "5242880"}
    assert own_configs(proxied[0], topic, other) == {topic: after, other: before}


def test_a_ledger_that_is_not_compacted_is_refused_with_the_command(
    proxied: tuple[SandboxCluster, BrokerProxy], flow_factory: FlowFactory
) -> None:
    with refusing(proxied, flow_factory) as (flow, target):
        target.create_topics([WantedTopic(flow.ledger_topic, 1, 1, {"cleanup.policy": "delete"})])
        with pytest.raises(
            ConfigError, match=rf"kafka-configs\.sh .* --entity-name {flow.ledger_topic} --add-config cleanup\.policy=compact"
        ):
            ensure_internal_topics(flow, target)
        assert not target.topics([flow.state_topic])
