"""Measurements reach an OpenTelemetry collector as Airflow's metrics, with their tags; a collector that is away fails nothing.

What a whole run sends, from its tasks' own processes, is seen in test_signals.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from tests.airflow.collector import Collector, collecting
from tests.waiting import NEVER_SECONDS

pytestmark = pytest.mark.airflow

SCRIPT = """
import time
from ferry.airflow.tasks import emit
from ferry.monitoring.measurements import Measurement
emit([Measurement("record-count", 7, {"source": "A"}, counter=True), Measurement("byte-rate", 1.5, {"source": "A"})])
time.sleep(1)
print("done")
"""
QUICK = {"OTEL_METRIC_EXPORT_INTERVAL": "200", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


def run(settings: Mapping[str, str]) -> str:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    environment = {**os.environ, **settings, **QUICK}
    return subprocess.run(command, check=True, env=environment, timeout=NEVER_SECONDS, capture_output=True, text=True).stdout


def test_counts_and_gauges_arrive_with_their_tags(collector: Collector) -> None:
    assert "done" in run(collector.settings)
    found = collector.found()
    assert found["airflow.ferry.record-count"] == [({"source": "A"}, 7)]
    assert found["airflow.ferry.byte-rate"] == [({"source": "A"}, 1.5)]


def test_a_collector_that_is_away_fails_nothing(collector: Collector) -> None:
    assert "done" in run({**collector.settings, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert not collector.found()
