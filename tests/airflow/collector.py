"""An OpenTelemetry collector: a real HTTP server that decodes OTLP's protobuf and keeps the last value of each metric and tags."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

Points = list[tuple[dict[str, str], float]]


class Collector:
    """What it was sent: values by name and tags."""

    def __init__(self, port: int) -> None:
        self.settings = {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }
        self.received: Queue[bytes] = Queue()
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
