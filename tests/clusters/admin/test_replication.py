"""Replicas of new topics while some brokers are down."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conftest import Lab
from tests.opened import administration, plan_run, read_cluster_facts, read_flow_facts
from tests.waiting import until
from tools.kafka.brokers import SandboxBrokers

from ferry.config.settings import REMOTE_TOPICS, WantedReplicas
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode, TooFewBrokers
from ferry.ledger.topics import ensure_internal_topics, own_topics


@pytest.fixture(scope="module")
def lame(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxBrokers]:
    """Three brokers, of which two are down: all that is left is the one with the controller."""
    settings = {
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "default.replication.factor": "1",
    }
    with SandboxBrokers.start(tmp_path_factory.mktemp("lame"), "lame", brokers=1, each=lambda _: settings) as cluster:
        for _ in range(2):
            cluster.add()
        client = AdminClient(cluster.client_settings())
        client.create_topics([NewTopic("wide", 1, 3)])["wide"].result(30)
        for node in (2, 3):
            cluster.nodes[node].kill()
        until(lambda: _brokers_up(cluster) == {1})  # the controller takes them for alive until their sessions end
        yield cluster


def _brokers_up(cluster: SandboxBrokers) -> set[int]:
    """Empty if nobody answers. With one client for all looks, a look that began as a broker was killed could time out."""
    with suppress(KafkaException):
        return set(AdminClient(cluster.client_settings()).list_topics(timeout=30).brokers)
    return set()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("wanted", "brokers", "broker_default", "asked"),
    [
        (WantedReplicas("k", 3, given=False), 1, 1, 1),
        (WantedReplicas("k", 3, given=False), 5, 1, 3),
        (WantedReplicas("k", 3, given=False), 1, 2, 2),
        (WantedReplicas("k", 3, given=True), 1, 1, 3),
        (WantedReplicas("k", -1, given=True), 3, 2, 2),
    ],
)
def test_only_a_default_is_lowered(wanted: WantedReplicas, brokers: int, broker_default: int, asked: int) -> None:
    assert wanted.on(brokers, broker_default) == asked


@pytest.mark.brokers
def test_brokers_that_are_down_count(lame: SandboxBrokers, lab: Lab) -> None:
    topic = lab.topic(lab.source)
    lab.produce(lab.source, topic, [(0, None, b"x")])
    lines = (f"A->B.topics = {topic}", "A->B.replication.factor = 3", "A->B.ferry.internal.topics.replication.factor = 3", *lab.copy_only)
    flow = lab.flow(*lines, target=lame.nodes[1])
    assert lab.run(flow).exit_code is ExitCode.DONE
    remote = f"{flow.source.alias}.{topic}"
    with administration(flow.target) as target:
        assert {name: found.replication_factor for name, found in target.topics([*own_topics(flow), remote]).items()} == dict.fromkeys(
            [*own_topics(flow), remote], 3
        )
    assert plan_run(flow, RunRequest(flow.name, "plan")).few_replicas == ()
    more = replace(flow, replication_factor=4)
    assert {(few.topic, few.key) for few in plan_run(more, RunRequest(flow.name, "plan")).few_replicas} == {(remote, REMOTE_TOPICS)}
    facts = read_flow_facts(more, read_cluster_facts(flow.source), read_cluster_facts(flow.target))
    assert [str(few) for few in facts.few_replicas] == [f"topic {remote} has 3 replicas, and {REMOTE_TOPICS} wants 4"]


@pytest.mark.brokers
def test_more_replicas_than_brokers_are_refused_by_key_and_count(lame: SandboxBrokers, lab: Lab) -> None:
    topic = lab.topic(lab.source)
    flow = lab.flow(
        f"A->B.topics = {topic}", "A->B.replication.factor = 4", "A->B.ferry.internal.topics.replication.factor = 5", target=lame
    )
    told = "ferry.internal.topics.replication.factor=5, and 1 of 3 known brokers"
    with administration(flow.target) as target, pytest.raises(TooFewBrokers, match=told):
        ensure_internal_topics(flow, target)
    (failure,) = plan_run(flow, RunRequest(flow.name, "plan")).failed
    assert (failure.topic, failure.error) == (topic, "TargetMissing")
    assert f"replication.factor=4, and 1 of 3 known brokers of {flow.target.alias} are up" in failure.problem


@pytest.mark.brokers
def test_a_small_cluster_lowers_the_default(lab: Lab) -> None:
    flow = lab.flow(f"A->B.topics = {secrets.token_hex(4)}")
    flow = replace(flow, replicas_given=frozenset(), internal_topics_replication_factor=3)
    with administration(flow.target) as target:
        created = ensure_internal_topics(flow, target)
        assert {found.replication_factor for found in target.topics(created).values()} == {1}
