"""Findings about limits of managed services, from facts and the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.clusters.api_versions import Capabilities
from ferry.config import Flow, load_config
from ferry.doctor.cluster_facts import ClusterFacts
from ferry.doctor.finding import Finding, Verdict
from ferry.doctor.service_checks import service_findings

pytestmark = pytest.mark.unit

PLAIN = ClusterFacts("A", "a:9092", "ANONYMOUS", None, "id", 3, 3, Capabilities({3: 13}))
EVENT_HUBS = replace(PLAIN, alias="B", bootstrap="shop.servicebus.windows.net:9093")
CONFLUENT = replace(PLAIN, alias="B", cluster_id="lkc-1")


@pytest.fixture
def flow_of(tmp_path: Path) -> Callable[..., Flow]:
    def make(*lines: str) -> Flow:
        path = tmp_path / "mm2.properties"
        given = ["clusters = A, B", "A.bootstrap.servers = a:9092", "B.bootstrap.servers = b:9092", "A->B.enabled = true", *lines]
        path.write_text("\n".join(given) + "\n", encoding="latin-1")
        return load_config(path).flow("A->B")

    return make


def warned(findings: list[Finding]) -> list[str]:
    return [entry.fix for entry in findings if entry.verdict is Verdict.WARNING]


def test_plain_clusters_have_none(flow_of: Callable[..., Flow]) -> None:
    assert list(service_findings(flow_of(), PLAIN, replace(PLAIN, alias="B"))) == []


def test_a_missing_setting_is_named_with_its_key(flow_of: Callable[..., Flow]) -> None:
    found = list(service_findings(flow_of("A->B.replication.factor = 2"), PLAIN, CONFLUENT))
    assert warned(found) == ["set A->B.replication.factor = -1"]
    assert found[0].found.startswith("B is Confluent Cloud: Every topic has three replicas. Another number is refused")
    assert warned(list(service_findings(flow_of("A->B.replication.factor = 3"), PLAIN, CONFLUENT))) == []


def test_settings_of_clients_count_too(flow_of: Callable[..., Flow]) -> None:
    keys = ["A->B.transaction.producer = false", "A->B.sync.topic.configs.enabled = false"]
    before = warned(list(service_findings(flow_of(), PLAIN, EVENT_HUBS)))
    assert "set B.producer.max.request.size = 1000000" in before
    after = warned(list(service_findings(flow_of(*keys, "B.producer.max.request.size = 1000000"), PLAIN, EVENT_HUBS)))
    assert set(before) - set(after) == {
        "set A->B.transaction.producer = false",
        "set A->B.sync.topic.configs.enabled = false",
        "set B.producer.max.request.size = 1000000",
    }
    assert "set B.producer.max.request.size = 1000000" in warned(
        list(service_findings(flow_of("B.producer.max.request.size = 2000000"), PLAIN, EVENT_HUBS))
    )


def test_what_cannot_be_told_apart_is_told_of_all(flow_of: Callable[..., Flow]) -> None:
    told = [entry.found.partition(":")[0] for entry in service_findings(flow_of(), PLAIN, EVENT_HUBS)]
    assert set(told) == {"B may be Azure Event Hubs, Standard", "B may be Azure Event Hubs, Premium and Dedicated"}


def test_a_source_has_limits_of_its_own(flow_of: Callable[..., Flow]) -> None:
    redpanda = replace(PLAIN, cluster_id="redpanda.1")
    (found,) = service_findings(flow_of(), redpanda, replace(PLAIN, alias="B"))
    assert (found.verdict, "Stop the flow when you recreate a topic" in found.found) == (Verdict.OK, True)
