"""Measurements reach an OpenTelemetry collector as Airflow's metrics, with their tags; a collector that is away fails nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

pytestmark = pytest.mark.airflow

SCRIPT = """
import time
from ferry.airflow.metrics import emit
from ferry.reporting.measurements import Measurement
emit([Measurement("record-count", 7, {"source": "A"}, counter=True), Measurement("byte-rate", 1.5, {"source": "A"})])
time.sleep(1)
print("done")
"""
SECONDS = 60


@pytest.fixture
def collector() -> Iterator[tuple[int, Queue[bytes]]]:
    """Its port, and what it was sent."""
    received: Queue[bytes] = Queue()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, received
        server.shutdown()
        thread.join()


def run(port: int) -> str:
    settings = {
        "AIRFLOW__METRICS__OTEL_ON": "True",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, check=True, env={**os.environ, **settings}, timeout=SECONDS, capture_output=True, text=True)
    return done.stdout


def test_counts_and_gauges_arrive_with_their_tags(collector: tuple[int, Queue[bytes]]) -> None:
    port, received = collector
    assert "done" in run(port)
    found = {}
    while not received.empty():
        request = ExportMetricsServiceRequest.FromString(received.get())
        for metric in (metric for resource in request.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics):
            for point in (*metric.sum.data_points, *metric.gauge.data_points):  # Airflow has timers of its own besides
                tags = {attribute.key: attribute.value.string_value for attribute in point.attributes}
                found[metric.name] = (point.as_double or point.as_int, tags)
    assert found["airflow.ferry.record-count"] == (7, {"source": "A"})
    assert found["airflow.ferry.byte-rate"] == (1.5, {"source": "A"})


def test_a_collector_that_is_away_fails_nothing() -> None:
    assert "done" in run(9)
