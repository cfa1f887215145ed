"""What a command sends to an OpenTelemetry collector by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics.export import AggregationTemporality, Sum
from tests.airflow.collector import Collector, collecting
from tests.cli.inside import ferry
from tests.conftest import Lab
from tools.kafka.groups import commit_offsets

from ferry.ledger.sync_outcome import Measurement
from ferry.monitoring.sending import is_wanted, metrics_data, send

FOUND = [Measurement("record-count", 7, {"topic": "A.t"}, counter=True), Measurement("byte-rate", 1.5, {"topic": "A.t"})]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.mark.unit
@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318/v1/metrics"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_METRICS_EXPORTER": "none"}, False),
    ],
)
def test_who_names_no_collector_is_sent_nothing(environment: dict[str, str], wanted: bool) -> None:
    assert is_wanted(environment) == wanted


@pytest.mark.unit
def test_a_point_for_each_set_of_tags_however_many() -> None:
    many = [Measurement("lag-records", number, {"partition": str(number)}) for number in range(5_000)]
    (scope,) = metrics_data([*many, *FOUND], 1, 2, {}).resource_metrics[0].scope_metrics
    assert [(metric.name, len(metric.data.data_points)) for metric in scope.metrics] == [
        ("ferry.lag-records", 5_000),
        ("ferry.record-count", 1),
        ("ferry.byte-rate", 1),
    ]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("preference", "temporality"),
    [("", AggregationTemporality.CUMULATIVE), ("cumulative", AggregationTemporality.CUMULATIVE), ("Delta", AggregationTemporality.DELTA)],
)
def test_counters_are_as_the_collector_wants_them(preference: str, temporality: AggregationTemporality) -> None:
    environment = {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": preference}
    data = metrics_data(FOUND, 1, 2, environment).resource_metrics[0].scope_metrics[0].metrics[0].data
    assert isinstance(data, Sum)
    assert (data.aggregation_temporality, data.is_monotonic) == (temporality, True)


@pytest.mark.unit
def test_a_collector_that_is_away_is_named_without_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:planted@127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    trouble = send(FOUND, 1)
    assert "the collector of OTEL_EXPORTER_OTLP_ENDPOINT" in trouble
    assert "planted" not in trouble
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "planted")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    assert send(FOUND, 1) == "the metrics were not sent to the collector of OTEL_EXPORTER_OTLP_ENDPOINT: InvalidCompressionValueException"


@pytest.mark.brokers
def test_a_run_sends_what_mirror_maker_measures_under_its_names(collector: Collector, lab: Lab) -> None:
    topic = lab.topic(lab.source)
    lab.produce(lab.source, topic, [(0, b"k", b"v")] * 5)
    group = f"g-{topic}"
    commit_offsets(lab.source.client_settings(), group, {(topic, 0): 3})
    path: Path = lab.config(f"A->B.topics = {topic}", f"A->B.groups = {group}")
    flow = path.read_text().partition("clusters = ")[2].partition("\n")[0].replace(" ", "").replace(",", "->")
    done = ferry("run", path, "--flow", flow, "--master", "inline", environment=collector.settings)
    assert done.returncode == 0, done.stderr
    found = collector.found()
    source, _, target = flow.partition("->")
    tags = {"source": source, "target": target, "topic": f"{source}.{topic}", "partition": "0"}
    ages = {f"{name}{end}" for name in ("record-age-ms", "replication-latency-ms") for end in ("", "-min", "-max", "-avg")}
    for name in {"record-count", "record-rate", "byte-count", "byte-rate"} | ages:
        assert [value for seen, value in found[f"ferry.{name}"] if seen == tags], name
    assert (tags, 5) in found["ferry.record-count"]
    for end in ("", "-min", "-max", "-avg"):
        assert [seen for seen, _ in found[f"ferry.checkpoint-latency-ms{end}"]] == [{**tags, "group": group}]
    assert found["ferry.run-exit-code"] == [({"source": source, "target": target}, 0)]
    assert (tags, 0) in found["ferry.lag-records"]
    away = collector.settings | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    done = ferry("run", path, "--flow", flow, "--master", "inline", environment=away)
    assert done.returncode == 0
    assert "warning: the metrics were not sent" in done.stderr


@pytest.mark.unit
@pytest.mark.parametrize(("environment", "expected"), [({}, None), ({"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=mine"}, "mine")])
def test_runs_are_one_instance(environment: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an instance of its own, each run would begin new series beside the old ones."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (resource,) = metrics_data([Measurement("records", 1.0)], 0, 1, environment).resource_metrics
    assert resource.resource.attributes.get("service.instance.id") == expected
