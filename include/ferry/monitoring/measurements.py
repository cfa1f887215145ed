"""The metrics of a run, under MirrorMaker 2's names and tags where it has them (MirrorSourceMetrics, MirrorCheckpointMetrics).

MM2 does not measure lag, headroom, runs, groups and verifies; these metrics have names of Ferry's own. tools/docs/metrics_page.py lists
all names.

There is one set for each remote partition to which the run appended, with the tags source, target, topic and partition; the checkpoint
latency has the tag group too. Three things differ from MM2: bytes are those of record batches as stored (MM2: of values); rates are over
the run (MM2: over a sliding window); and the age of a record is measured when the target has it (MM2: when the source delivers it).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from ferry.ledger.counters import MinMeanMax
from ferry.ledger.run_report import PartitionReport, RunReport
from ferry.ledger.sync_outcome import Measurement
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus
from ferry.verify.verify_report import VerifyReport


def run_measurements(report: RunReport, source: str, target: str) -> list[Measurement]:
    """The metrics of a run's partitions, and of the run as a whole, also of one that had nothing to copy."""
    tags = {"source": source, "target": target}
    found = [one for partition in report.partitions for one in _of_partition(partition, report.seconds, tags)]
    values = {
        "run-records": report.records,
        "run-bytes": report.bytes,
        "run-seconds": report.seconds,
        "run-cpu-seconds": report.cpu_seconds,
        "run-exit-code": int(report.exit_code),
        "run-finished": round(datetime.fromisoformat(report.finished).timestamp(), 3),
        "failed-partitions": len(report.failed),
        "lost-records": sum(loss.upstream_end - loss.upstream_start for loss in report.losses),
    }
    return [*found, *(Measurement(name, value, tags) for name, value in values.items())]


def status_measurements(status: FlowHealth, source: str, target: str) -> list[Measurement]:
    """Lag and headroom of every partition. Partitions without lag count too, because a gauge would keep its last value."""
    tags = {"source": source, "target": target}
    found = [one for partition in status.partitions for one in _lag_of(partition, tags)]
    counts = {
        "open-transactions": len(status.last_stable_lags),
        "hanging-transactions": len(status.held),
        "limits-broken": len(status.broken),
    }
    return [*found, *(Measurement(name, value, tags) for name, value in counts.items())]


def verify_measurements(report: VerifyReport, source: str, target: str) -> list[Measurement]:
    tags = {"source": source, "target": target}
    values = {
        "verify-records": report.records,
        "verify-differences": report.differences_total,
        "verify-not-compared": len(report.not_covered) + len(report.failed),
    }
    return [Measurement(name, value, tags) for name, value in values.items()]


def _lag_of(partition: PartitionStatus, flow: Mapping[str, str]) -> Iterator[Measurement]:
    tags = {**flow, "topic": partition.remote_topic, "partition": str(partition.partition)}
    yield Measurement("lag-records", partition.lag_records, tags)
    for name, value in (("lag-bytes", partition.lag_bytes), ("lag-seconds", round(partition.lag_seconds, 3))):
        if value >= 0:
            yield Measurement(name, value, tags)
    # Without lag: the headroom that a new record would have, because the gauge must not keep a low value.
    headroom = partition.headroom_seconds if partition.lag_records else partition.retention_seconds
    if headroom is not None:
        yield Measurement("headroom-seconds", round(headroom, 3), tags)


def _of_partition(partition: PartitionReport, seconds: float, flow: Mapping[str, str]) -> Iterator[Measurement]:
    counted = partition.counters
    if not counted.records:
        return
    tags = {**flow, "topic": partition.remote_topic, "partition": str(partition.partition)}
    yield Measurement("record-count", counted.records, tags, counter=True)
    yield Measurement("byte-count", counted.bytes, tags, counter=True)
    yield Measurement("record-bytes-avg", round(counted.bytes / counted.records, 1), tags)
    if seconds > 0:
        yield Measurement("record-rate", round(counted.records / seconds, 3), tags)
        yield Measurement("byte-rate", round(counted.bytes / seconds, 3), tags)
    yield from _ages("record-age-ms", counted.record_age_ms, partition.last_record_age_ms, tags)
    yield from _ages("replication-latency-ms", counted.replication_latency_ms, partition.last_replication_latency_ms, tags)


def _ages(name: str, ages: MinMeanMax | None, last: int | None, tags: Mapping[str, str]) -> Iterator[Measurement]:
    if last is not None:
        yield Measurement(name, last, tags)
    if ages is not None:
        yield Measurement(f"{name}-min", ages.least, tags)
        yield Measurement(f"{name}-max", ages.greatest, tags)
        yield Measurement(f"{name}-avg", round(ages.mean, 1), tags)
