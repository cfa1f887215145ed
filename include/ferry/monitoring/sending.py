"""Sends what a command measured to an OpenTelemetry collector, if the environment names one. Airflow's tasks send theirs through Airflow.

OpenTelemetry's own variables say where to and how. A command sends once, at its end, and then ends itself. So each metric has one value,
and a counter begins at 0 when the command began. A metric never fails a run.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ferry import clock
from ferry.clusters.net.partitions import grouped
from ferry.ledger.sync_outcome import Measurement

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import Metric, MetricExporter, MetricsData

METRIC_PREFIX = "ferry."
ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_TEMPORALITY = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
MISSING = "the metrics were not sent, because OpenTelemetry is not installed: pip install 'kafka-ferry[otel]'"
INSTANCE = "service.instance.id"
# A command that is done waits this long for a collector that does not answer, unless a variable says otherwise.
SEND_SECONDS = 5.0


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a collector, and does not switch metrics off (pure)."""
    off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_METRICS_EXPORTER", "").lower() == "none"
    return bool(_first(environment, ENDPOINTS)) and not off


def send(found: Iterable[Measurement], began: int) -> str:
    """Send them, if they are wanted. `began`: when the command began, in ns since 1970. Returns why they were not sent, for people."""
    if not is_wanted(os.environ):
        return ""
    try:
        from opentelemetry.sdk.metrics.export import MetricExportResult  # noqa: PLC0415 - slow to load, and few commands send
    except ImportError:
        return MISSING

    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the caller says it
    variable = next(name for name in ENDPOINTS if os.environ.get(name))
    try:
        exporter = _exporter(os.environ)
        sent = exporter.export(metrics_data(found, began, clock.time_ns(), os.environ))
        exporter.shutdown()
    except ImportError:  # of the exporter, which is a package of its own
        return MISSING
    except Exception as problem:  # noqa: BLE001 - of a library, by settings of any kind; only its class, because the settings may hold secrets
        return f"the metrics were not sent to the collector of {variable}: {type(problem).__name__}"
    if sent is not MetricExportResult.SUCCESS:
        return f"the metrics were not sent: the collector of {variable} did not accept them, or did not answer in time"
    return ""


def metrics_data(found: Iterable[Measurement], began: int, now: int, environment: Mapping[str, str]) -> "MetricsData":
    """The measurements as OpenTelemetry has them: one metric of each name, with a point for each set of tags (pure)."""
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics  # noqa: PLC0415 - as above
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - as above
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415 - as above

    by_name = grouped((one.name, one) for one in found)
    metrics = [_metric(name, ones, began, now, environment) for name, ones in by_name.items()]
    named = Resource.create({} if environment.get("OTEL_SERVICE_NAME") else {"service.name": "ferry"})
    # The SDK draws one in each process, and each run would begin series of its own; one that the environment names stays.
    drawn = INSTANCE if INSTANCE not in environment.get("OTEL_RESOURCE_ATTRIBUTES", "") else ""
    resource = Resource({name: value for name, value in named.attributes.items() if name != drawn})
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(InstrumentationScope("ferry"), metrics, "")], "")])


def _metric(name: str, ones: list[Measurement], began: int, now: int, environment: Mapping[str, str]) -> "Metric":
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Metric, NumberDataPoint, Sum  # noqa: PLC0415 - as above

    points = [NumberDataPoint(dict(one.tags), began, now, one.value) for one in ones]
    if not ones[0].counter:
        return Metric(METRIC_PREFIX + name, None, "", Gauge(points))
    delta = environment.get(_TEMPORALITY, "").lower() in {"delta", "lowmemory"}
    temporality = AggregationTemporality.DELTA if delta else AggregationTemporality.CUMULATIVE
    return Metric(METRIC_PREFIX + name, None, "", Sum(points, temporality, is_monotonic=True))


def _exporter(environment: Mapping[str, str]) -> "MetricExporter":
    timeout = None if _first(environment, _TIMEOUTS) else SEND_SECONDS
    if _first(environment, _PROTOCOLS) == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc  # noqa: PLC0415 - as above

        return grpc.OTLPMetricExporter(timeout=timeout)
    from opentelemetry.exporter.otlp.proto.http import metric_exporter as http  # noqa: PLC0415 - as above

    return http.OTLPMetricExporter(timeout=timeout)


def _first(environment: Mapping[str, str], names: Iterable[str]) -> str:
    return next((environment[name] for name in names if environment.get(name)), "")
