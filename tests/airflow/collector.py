"""A collector: a real HTTP server that takes OpenTelemetry's metrics and OpenLineage's events.

It decodes OTLP's protobuf and keeps the last value of each metric and tags. It keeps each event of lineage.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

Points = list[tuple[dict[str, str], float]]


class Collector:
    """What it was sent: values by name and tags; `lineage`: events."""

    def __init__(self, port: int) -> None:
        self.settings = {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }
        transport = {"type": "http", "url": f"http://127.0.0.1:{port}", "endpoint": "lineage"}
        self.lineage_settings = {"AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport)}
        self.received: Queue[bytes] = Queue()
        self.lineage: list[dict[str, Any]] = []
        self._values: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}

    def found(self) -> dict[str, Points]:
        """Everything so far."""
        while not self.received.empty():
            request = ExportMetricsServiceRequest.FromString(self.received.get())
            for metric in (metric for resource in request.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics):
                for point in (*metric.sum.data_points, *metric.gauge.data_points):  # Airflow has timers of its own besides
                    tags = tuple(sorted((attribute.key, attribute.value.string_value) for attribute in point.attributes))
                    self._values.setdefault(metric.name, {})[tags] = point.as_double or float(point.as_int)
        return {name: [(dict(tags), value) for tags, value in points.items()] for name, points in self._values.items()}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/metrics"):
                collector.received.put(body)
            elif self.path == "/lineage":
                collector.lineage.append(json.loads(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
