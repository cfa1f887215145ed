"""Findings about limits of managed services, from facts and the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.clusters.admin.api_versions import Capabilities
from ferry.config import Flow, load_config
from ferry.doctor.cluster_facts import ClusterFacts
from ferry.doctor.finding import Finding, Verdict
from ferry.doctor.service_checks import service_findings, too_many_topics, topics_beforehand
from ferry.ledger.topics import OwnTopic
from ferry.pipeline.wrong_topics import names_on

pytestmark = pytest.mark.unit

PLAIN = ClusterFacts("A", "a:9092", "ANONYMOUS", None, "id", 3, 3, Capabilities({3: 13}))
EVENT_HUBS = replace(PLAIN, alias="B", bootstrap="shop.servicebus.windows.net:9093")
SERVERLESS = replace(PLAIN, alias="B", bootstrap="boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com:9098")
CONFLUENT = replace(PLAIN, alias="B", cluster_id="lkc-1")


@pytest.fixture
def flow_of(tmp_path: Path) -> Callable[..., Flow]:
    def make(*lines: str) -> Flow:
        path = tmp_path / "mm2.properties"
        given = ["clusters = A, B", "A.bootstrap.servers = a:9092", "B.bootstrap.servers = b:9092", "A->B.enabled = true", *lines]
        path.write_text("\n".join(given) + "\n", encoding="latin-1")
        return load_config(path).flow("A->B")

    return make


def fixes(findings: Iterable[Finding], *verdicts: Verdict) -> list[str]:
    return [entry.fix for entry in findings if entry.verdict in (verdicts or (Verdict.WARNING, Verdict.FAILURE))]


IF_STANDARD = "only if B is Azure Event Hubs (Standard) (look it up in the service's console)"


def test_plain_clusters_have_none(flow_of: Callable[..., Flow]) -> None:
    assert list(service_findings(flow_of(), PLAIN, replace(PLAIN, alias="B"))) == []


def test_a_missing_setting_is_named_with_its_key(flow_of: Callable[..., Flow]) -> None:
    found = list(service_findings(flow_of("A->B.sync.topic.acls.enabled = true"), PLAIN, SERVERLESS))
    assert fixes(found, Verdict.FAILURE) == ["write in mm2.properties: A->B.sync.topic.acls.enabled = false"]
    assert any(entry.found.startswith("B is Amazon MSK Serverless: Users log in with IAM") for entry in found)
    assert fixes(service_findings(flow_of("A->B.sync.topic.acls.enabled = false"), PLAIN, SERVERLESS)) == []


def test_what_a_service_decides_by_itself_needs_no_setting(flow_of: Callable[..., Flow]) -> None:
    found = list(service_findings(flow_of("A->B.replication.factor = 2"), PLAIN, CONFLUENT))
    assert found[0].found.startswith("B is Confluent Cloud: Every topic has three replicas. Where replication.factor is lower")
    assert fixes(found) == []


def test_settings_of_clients_count_too(flow_of: Callable[..., Flow]) -> None:
    keys = ["A->B.transaction.producer = false", "A->B.sync.topic.configs.enabled = false"]
    before = fixes(service_findings(flow_of(), PLAIN, EVENT_HUBS))
    assert "write in mm2.properties: B.producer.max.request.size = 1000000" in before
    after = fixes(service_findings(flow_of(*keys, "B.producer.max.request.size = 1000000"), PLAIN, EVENT_HUBS))
    assert set(before) - set(after) == {
        f"{IF_STANDARD}: write in mm2.properties: A->B.transaction.producer = false",
        "write in mm2.properties: A->B.sync.topic.configs.enabled = false",
        "write in mm2.properties: B.producer.max.request.size = 1000000",
    }
    too_large = flow_of("B.producer.max.request.size = 2000000")
    assert "write in mm2.properties: B.producer.max.request.size = 1000000" in fixes(service_findings(too_large, PLAIN, EVENT_HUBS))


def test_what_cannot_be_told_apart_says_for_whom_a_setting_is(flow_of: Callable[..., Flow]) -> None:
    """A limit of both is told once. A key that both need is a failure; what one of them needs is a warning with a condition."""
    found = list(service_findings(flow_of(), PLAIN, EVENT_HUBS))
    told = [(entry.found.partition(":")[0], entry.verdict) for entry in found]
    assert told.count(("B is Azure Event Hubs (Standard or Premium or Dedicated)", Verdict.FAILURE)) == 2
    codecs = [entry.found for entry in found if "compress" in entry.found]
    assert len(codecs) == 1, "both need it"
    assert "(Standard): Records cannot" in codecs[0]
    assert "(Premium or Dedicated): Records are" in codecs[0]
    assert fixes(found, Verdict.WARNING) == [f"{IF_STANDARD}: write in mm2.properties: A->B.transaction.producer = false"]
    assert fixes(found, Verdict.FAILURE).count("write in mm2.properties: A->B.ferry.compression.type = none") == 1, "it suits both"


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        (["ferry.compression.type = none", "transaction.producer = false"], []),
        (["ferry.compression.type = none"], ["transaction.producer = false"]),
        (["ferry.compression.type = gzip"], ["transaction.producer = false", "ferry.compression.type = none"]),
    ],
)
def test_what_only_one_of_them_needs_stays_a_warning(keys: list[str], left: list[str], flow_of: Callable[..., Flow]) -> None:
    both = ["A->B.sync.topic.configs.enabled = false", "B.producer.max.request.size = 1000000"]
    found = list(service_findings(flow_of(*both, *(f"A->B.{key}" for key in keys)), PLAIN, EVENT_HUBS))
    assert fixes(found, Verdict.FAILURE) == []
    assert [fix.partition("A->B.")[2] for fix in fixes(found)] == left


def test_topics_that_ferry_cannot_create_are_named(flow_of: Callable[..., Flow]) -> None:
    flow = flow_of()
    (found,) = topics_beforehand(flow, EVENT_HUBS, {flow.ledger_topic, "heartbeats"}, {"A.users": OwnTopic(6, "compact,delete")})
    assert (found.verdict, found.check) == (Verdict.FAILURE, "topics to create")
    assert found.found.endswith(
        f"A.users (6, compact,delete), heartbeats (1, compact), {flow.ledger_topic} ({flow.ledger_partitions}, compact)"
    )
    assert list(topics_beforehand(flow, EVENT_HUBS, set(), {})) == []
    assert list(topics_beforehand(flow, CONFLUENT, {flow.ledger_topic}, {})) == []
    assert list(topics_beforehand(flow, replace(PLAIN, alias="B"), {flow.ledger_topic}, {})) == []


def test_a_service_that_holds_fewer_topics_than_the_flow_needs(flow_of: Callable[..., Flow]) -> None:
    flow = flow_of()
    own = len(names_on(flow, flow.target))
    (found,) = too_many_topics(flow, EVENT_HUBS, 11 - own)
    assert (found.verdict, found.check) == (Verdict.WARNING, "service")
    assert found.found == (
        "B may be Azure Event Hubs (Standard), which holds at most 10 topics; "
        f"the flow alone needs 11 topics there: {11 - own} remote topics and {own} of Ferry's own"
    )
    assert list(too_many_topics(flow, EVENT_HUBS, 10 - own)) == []
    assert list(too_many_topics(flow, CONFLUENT, 1_000)) == []


def test_a_source_has_limits_of_its_own(flow_of: Callable[..., Flow]) -> None:
    warpstream = replace(PLAIN, bootstrap="api-x.discoveryv2.prod-z.us-east-1.warpstream.com:9092")
    (found,) = service_findings(flow_of(), warpstream, replace(PLAIN, alias="B"))
    assert (found.verdict, "an unclean leader election" in found.found) == (Verdict.OK, True)
    redpanda = replace(PLAIN, cluster_id="redpanda.1")
    assert list(service_findings(flow_of(), redpanda, replace(PLAIN, alias="B"))) == [], "its cluster says so, by what it offers"
