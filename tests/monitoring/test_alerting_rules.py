"""The rules for Prometheus: they ask for metrics that Ferry sends, promtool sees each fire and not fire, and so does a real Prometheus."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.airflow.collector import Collector, collecting
from tests.monitoring.prometheus import Prometheus, exposition, page_of_metrics, program, prometheus
from tests.test_documentation import COMMANDS
from tests.waiting import NEVER_SECONDS, until
from tools.docs.metrics_page import METRICS

from ferry.alerting.alert import Severity
from ferry.clusters.logs.held_back import LastStableLag
from ferry.clusters.net.partitions import TopicPartition
from ferry.ledger.run_report import LossReport, PartitionFailure, RunReport
from ferry.ledger.sync_outcome import Measurement
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.limits import BrokenLimit
from ferry.monitoring.measurements import run_measurements, status_measurements, verify_measurements
from ferry.monitoring.sending import METRIC_PREFIX, send
from ferry.syncs.group_offsets import groups_outcome
from ferry.syncs.translated_groups import GroupLeftOut, TranslatedGroups
from ferry.verify.verify_report import VerifyReport

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / "monitoring" / "prometheus"
TEXT = (DIRECTORY / "ferry.rules.yml").read_text(encoding="utf-8")
RULES: dict[str, dict[str, Any]] = {rule["alert"]: rule for group in yaml.safe_load(TEXT)["groups"] for rule in group["rules"]}
PREFIX = "airflow_ferry_"
FLOW = "{{ $labels.source }}->{{ $labels.target }}"
# The one that is about no flow.
MISSING = "FerryMetricsMissing"


@pytest.mark.unit
@pytest.mark.parametrize("name", RULES)
def test_a_rule_asks_for_metrics_that_exist_by_tags_that_they_have(name: str) -> None:
    known = {PREFIX + metric.name.replace("-", "_"): metric for metric in METRICS}
    rule = RULES[name]
    asked = re.findall(r"\b(\w*ferry_\w+)", rule["expr"])
    assert asked
    # A counter means nothing: each task is a process of its own, and begins at 0.
    assert [metric for metric in asked if known[metric].kind != "gauge"] == []
    by = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"]))))
    assert all(by <= set(known[metric].tags) for metric in asked)
    assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) == by


@pytest.mark.unit
@pytest.mark.parametrize("name", RULES)
def test_an_alert_says_the_flow_and_the_next_command(name: str) -> None:
    rule = RULES[name]
    assert rule["labels"]["severity"] in set(Severity)
    told, flow = rule["annotations"], ["--flow", FLOW]
    assert told["summary"].startswith("Ferry: " if name == MISSING else f"{FLOW}: ")
    commands = [shlex.split(found) for found in re.findall(r"\bferry [a-z].*?(?=;|$)", told["description"].partition("Next")[2])]
    assert commands
    for command in commands:
        assert command[2:3] == ["mm2.properties"]
        assert name == MISSING or flow == [word for word in command if word in flow]
        options = {option for parameter in COMMANDS[" ".join(command[:2])].params for option in parameter.opts}
        assert {word for word in command if word.startswith("--")} <= options


@pytest.mark.unit
def test_the_names_are_those_of_ferry_run_without_the_prefix_of_airflow() -> None:
    sent = exposition({METRIC_PREFIX + metric.name: [({}, 0.0)] for metric in METRICS}, "")
    assert set(re.findall(r"\b\w*ferry_\w+", TEXT.replace(PREFIX, "ferry_"))) - {"ferry_"} <= set(re.findall(r"^\w+", sent, re.MULTILINE))


@pytest.mark.unit
def test_each_rule_is_tested_both_ways() -> None:
    tests = yaml.safe_load((DIRECTORY / "ferry.rules.test.yml").read_text(encoding="utf-8"))["tests"]
    seen = {(case["alertname"], bool(case["exp_alerts"])) for test in tests for case in test["alert_rule_test"]}
    assert seen == {(name, fires) for name in RULES for fires in (True, False)}


@pytest.mark.unit
def test_the_page_lists_every_rule() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(Ferry\w+)` \| (\w+) \|", page, re.MULTILINE)
    assert rows == [(name, rule["labels"]["severity"]) for name, rule in RULES.items()]


@pytest.mark.prometheus
@pytest.mark.parametrize("arguments", [("check", "rules", "ferry.rules.yml"), ("test", "rules", "ferry.rules.test.yml")], ids=" ".join)
def test_promtool_accepts(arguments: tuple[str, ...]) -> None:
    command = [program("promtool"), *arguments]
    done = subprocess.run(command, cwd=DIRECTORY, timeout=NEVER_SECONDS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def healthy(source: str, target: str) -> list[Measurement]:
    """What a flow sends that has copied everything."""
    copied = PartitionStatus("t", 0, f"{source}.t", 9, 9, 0, 0, 0.0, None, None, 0, retention_seconds=604_800.0)
    report = RunReport(f"{source}->{target}", "r", "", datetime.now(UTC).isoformat(), "latest")
    return measured(source, target, report, FlowHealth(report.flow, (copied,)), TranslatedGroups((), (), ()), {})


def in_trouble(source: str, target: str, report: RunReport) -> list[Measurement]:
    """All but the run is in trouble: six of seven days are over for the record at 5, and a transaction has been open for an hour."""
    behind = PartitionStatus("t", 0, f"{source}.t", 5, 9, 4, 400, 518_401.0, 86_399.0, None, 0, retention_seconds=604_800.0)
    held = LastStableLag("t", 0, source, "a:9092", TopicPartition("t", 0), 7, 9, age_ms=3_600_000, overdue=True)
    status = FlowHealth(report.flow, (behind,), (held,), broken=(BrokenLimit("ferry.alert.lag.seconds", "t", 518_401.0, 3_600.0),))
    groups = TranslatedGroups(("g",), (), (GroupLeftOut("g", "no answer", "GroupFailed"),))
    return measured(source, target, report, status, groups, {"missing": 2})


def measured(
    source: str, target: str, report: RunReport, status: FlowHealth, groups: TranslatedGroups, differences: dict[str, int]
) -> list[Measurement]:
    class Clusters:
        """As much of a flow as the report of a group sync needs."""

    flow: Any = Clusters()
    flow.source, flow.target = Clusters(), Clusters()
    flow.source.alias, flow.target.alias = source, target
    return [
        *run_measurements(report, source, target),
        *status_measurements(status, source, target),
        *groups_outcome(flow, groups, [], {}).measurements,
        *verify_measurements(VerifyReport(report.flow, "v", "", "", counts=differences), source, target),
    ]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as running:
        for name, value in running.settings.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.mark.prometheus
def test_a_real_prometheus_fires_them_and_stops(collector: Collector, tmp_path: Path) -> None:
    rules = yaml.safe_load(TEXT)
    for rule in rules["groups"][0]["rules"]:
        rule.pop("for", None)  # the tests of promtool see them wait
    with page_of_metrics() as page, prometheus(tmp_path, rules, page.address) as running:

        def show(*flows: list[Measurement]) -> None:
            for found in flows:
                assert send(found, time.time_ns()) == ""
            page.text = exposition(collector.found(), "airflow.")

        fires(running, {(MISSING, "", "")})
        show(healthy("A", "B"), healthy("C", "D"))
        fires(running, set())
        long_ago = datetime.fromtimestamp(time.time() - 7_300, UTC).isoformat()
        lost = RunReport("A->B", "r", "", long_ago, "latest", losses=(LossReport("t", 0, 2, 5, "deleted"),))
        failed = RunReport("C->D", "r", "", long_ago, "latest", failed=(PartitionFailure("t", 0, "TargetMissing", "deleted"),))
        show(in_trouble("A", "B", lost), in_trouble("C", "D", failed))
        expected = {(name, *flow) for name in RULES if name != MISSING for flow in (("A", "B"), ("C", "D"))}
        unlike = {("FerryRunFailed", "A", "B"), ("FerryPartitionsStopped", "A", "B"), ("FerryLostRecords", "C", "D")}
        alerts = fires(running, expected - unlike)
        told = " ".join(text for alert in alerts for text in alert["annotations"].values())
        assert not re.search(r"\{\{|<no value>|<error", told), told
        assert "A->B: 3 records are lost" in told
        assert "exit code 5 (some partitions" in told
        show(healthy("A", "B"), healthy("C", "D"))
        fires(running, {("FerryLostRecords", "A", "B")})


def fires(running: Prometheus, expected: set[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Waits until just these alerts fire (name, source, target), by an evaluation that knew what the page says now."""
    alerts: list[dict[str, Any]] = []

    def names() -> set[tuple[str, str, str]]:
        return {(alert["labels"]["alertname"], alert["labels"].get("source", ""), alert["labels"].get("target", "")) for alert in alerts}

    def just_these() -> bool:
        alerts[:] = running.firing()
        return names() == expected

    shown = datetime.now(UTC)
    until(lambda: running.scraped_since(shown), lambda: "the page was not scraped")
    scraped = datetime.now(UTC)
    until(lambda: running.evaluated_since(scraped) and just_these(), lambda: f"not as expected: {names() ^ expected}")
    return alerts
