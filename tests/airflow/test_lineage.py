"""What a copy read and wrote, as events of OpenLineage."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import ValidationError
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.serde import Serde
from tests.airflow.openlineage import validate

from ferry.airflow import lineage
from ferry.airflow.flows import FlowReference
from ferry.airflow.spark_operators import CopyRecordsOperator
from ferry.config import Flow, load_config
from ferry.config.flow import named_configs
from ferry.errors import ClusterUnreachable
from ferry.pipeline.refreshed import PARTITIONS_TOLD, RefreshedPartition, RefreshedTopic

pytestmark = pytest.mark.airflow

SECRET = "hunter2-not-in-events"
ORDERS = RefreshedTopic(
    "orders", "A.orders", (RefreshedPartition(0, 0, 5, 10, 16, 4, 50, 5), RefreshedPartition(2, 7, 9, 0, 3, 2, 20, 2)), -1, -1
)
PLANNED = {"needs_copy": True, "dry_run": False, "topics": [["orders", "A.orders"], ["payments", "A.payments"]]}
SKIPPED = {**PLANNED, "needs_copy": False}


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flow:
    config = tmp_path / "mm2.properties"
    config.write_text(
        "clusters = A, B\nA.bootstrap.servers = SASL_PLAINTEXT://a1:9092, a2:9093\nB.bootstrap.servers = b:1,b:2\nA->B.enabled = true\n"
        "A.security.protocol = SASL_PLAINTEXT\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = "
        f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{SECRET}";\n'
    )
    monkeypatch.setenv("FERRY_CONFIG", str(config))
    return load_config(config).flow("A->B")


def reference(flow: Flow) -> FlowReference:
    (config,) = named_configs()
    return FlowReference(config, flow.name)


@pytest.fixture
def operator(flow: Flow) -> Callable[..., Any]:
    def make(planned: dict[str, Any]) -> Any:
        return CopyRecordsOperator(task_id="copy_records", flow=reference(flow), planned=planned, conn_id="spark_default")

    return make


def event(found: lineage.Lineage) -> dict[str, Any]:
    """As the provider sends it."""
    made = RunEvent(
        eventTime=datetime.now(UTC).isoformat(),
        run=Run("0190a1b2-0000-7000-8000-000000000000"),
        job=Job("default", "ferry.A.B.copy_records"),
        producer="https://example.org",
        eventType=RunState.COMPLETE,
        inputs=found.inputs,
        outputs=found.outputs,
    )
    document: dict[str, Any] = json.loads(Serde.to_json(made))
    return document


def test_the_event_of_a_copy_is_as_the_schemas_say(flow: Flow) -> None:
    sent = event(lineage.copied_lineage(flow, [ORDERS]))
    assert validate(sent) == {"inputStatistics", "outputStatistics", "subset"}
    (source,), (target,) = sent["inputs"], sent["outputs"]
    assert (source["namespace"], source["name"], source["inputFacets"]["inputStatistics"]["rowCount"]) == ("kafka://a1:9092", "orders", 7)
    assert (target["namespace"], target["name"]) == ("kafka://b:1", "A.orders")
    assert {name: target["outputFacets"]["outputStatistics"][name] for name in ("rowCount", "size")} == {"rowCount": 6, "size": 70}
    assert [part["dimensions"] for part in source["inputFacets"]["subset"]["inputCondition"]["partitions"]] == [
        {"partition": 0, "startOffset": 0, "endOffset": 5},
        {"partition": 2, "startOffset": 7, "endOffset": 9},
    ]
    assert [part["dimensions"] for part in target["outputFacets"]["subset"]["outputCondition"]["partitions"]] == [
        {"partition": 0, "startOffset": 10, "endOffset": 16},
        {"partition": 2, "startOffset": 0, "endOffset": 3},
    ]
    assert SECRET not in json.dumps(sent)


def test_the_validation_sees_a_wrong_facet(flow: Flow) -> None:
    sent = event(lineage.copied_lineage(flow, [ORDERS]))
    sent["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] = "many"
    with pytest.raises(ValidationError, match="many"):
        validate(sent)


def test_ranges_are_left_out_if_there_are_too_many(flow: Flow) -> None:
    wide = RefreshedTopic(
        "t", "A.t", tuple(RefreshedPartition(number, 0, 1, 0, 1, 1, 9, 1) for number in range(PARTITIONS_TOLD + 1)), -1, -1
    )
    sent = event(lineage.copied_lineage(flow, [wide]))
    assert validate(sent) == {"inputStatistics", "outputStatistics"}
    assert sent["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == PARTITIONS_TOLD + 1


def test_the_operator_names_what_is_planned_then_what_was_copied(operator: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read(_: Flow, run_id: str) -> tuple[RefreshedTopic, ...]:
        asked.append(run_id)
        return (ORDERS,)

    monkeypatch.setattr(lineage, "read_refreshed", read)
    copy = operator(PLANNED)
    begun, ended = copy.get_openlineage_facets_on_start(), copy.get_openlineage_facets_on_complete(SimpleNamespace(run_id="run-1"))
    assert [dataset.name for dataset in begun.outputs] == ["A.orders", "A.payments"]
    assert validate(event(begun)) == set()
    assert [dataset.name for dataset in ended.outputs] == ["A.orders"]
    assert asked == ["run-1"]


def test_a_skipped_copy_has_no_datasets(operator: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "read_refreshed", lambda *_: pytest.fail("a skipped copy read the ledger"))
    copy = operator(SKIPPED)
    assert copy.get_openlineage_facets_on_start() is None
    assert copy.get_openlineage_facets_on_complete(SimpleNamespace(run_id="run-1")) is None


def test_without_an_answer_of_the_target_the_planned_topics_are_named(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unreachable(*_: object) -> None:
        raise ClusterUnreachable("cluster B does not answer")

    release = threading.Event()
    for read, said in ((unreachable, "cluster B does not answer"), (lambda *_: release.wait(), "B did not answer within 0 s")):
        monkeypatch.setattr(lineage.conf, "execution_timeout", lambda seconds=0 if read is not unreachable else 600: seconds)
        monkeypatch.setattr(lineage, "read_refreshed", read)
        found = lineage.ended(reference(flow), PLANNED, "run-1")
        assert found is not None
        assert [dataset.name for dataset in found.inputs] == ["orders", "payments"]
        assert said in caplog.text
    release.set()


def test_the_asset_of_a_topic_is_the_dataset_that_the_copy_wrote(flow: Flow) -> None:
    (copied,) = lineage.copied_lineage(flow, [ORDERS]).outputs
    found = lineage.dataset_of_asset(SimpleNamespace(uri="ferry://B/topics/A.orders"), None)
    assert found is not None
    assert (found.namespace, found.name) == (copied.namespace, copied.name)
    for other in ("ferry://A/B", "ferry://C/topics/A.orders", "ferry://B/topics/", "ferry://B/groups/x"):
        assert lineage.dataset_of_asset(SimpleNamespace(uri=other), None) is None
