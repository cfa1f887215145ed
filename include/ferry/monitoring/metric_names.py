"""Every metric that Ferry sends: name, kind, unit, tags and meaning. What measures, the documentation and the dashboard are held to it.

Names and tags of records and checkpoints are MirrorMaker 2's. What is measured of a run as a whole is a gauge: each task is a process of
its own, so that OpenTelemetry's counters begin anew with each run.
"""

from __future__ import annotations

from dataclasses import dataclass

FLOW = ("source", "target")
TOPIC = (*FLOW, "topic")
PARTITION = (*TOPIC, "partition")
GROUP = (*PARTITION, "group")


@dataclass(frozen=True)
class Metric:
    """One metric. `kind`: `counter` adds up over runs, `gauge` replaces the value before."""

    name: str
    kind: str
    unit: str
    tags: tuple[str, ...]
    meaning: str

    @property
    def row(self) -> str:
        """As in the table of docs/metrics.md."""
        return f"| `ferry.{self.name}` | {self.kind} | {self.unit} | {', '.join(self.tags)} | {self.meaning} |"


METRICS: tuple[Metric, ...] = (
    Metric("record-count", "counter", "records", PARTITION, "appended to the remote partition"),
    Metric("byte-count", "counter", "bytes", PARTITION, "appended, of record batches as stored"),
    Metric(
        "record-bytes-avg", "gauge", "bytes", PARTITION, "bytes a record; KIP-382's `-min` and `-max` are not known without opening batches"
    ),
    Metric("record-rate", "gauge", "records/s", PARTITION, "over the run"),
    Metric("byte-rate", "gauge", "bytes/s", PARTITION, "over the run"),
    Metric("record-age-ms-min", "gauge", "ms", PARTITION, "age of the youngest record when the target had it"),
    Metric("record-age-ms-avg", "gauge", "ms", PARTITION, "mean of these ages"),
    Metric("record-age-ms-max", "gauge", "ms", PARTITION, "age of the oldest"),
    Metric("replication-latency-ms-min", "gauge", "ms", PARTITION, "age of the youngest record when its transaction was committed"),
    Metric("replication-latency-ms-avg", "gauge", "ms", PARTITION, "mean of these ages"),
    Metric("replication-latency-ms-max", "gauge", "ms", PARTITION, "age of the oldest"),
    Metric("checkpoint-latency-ms", "gauge", "ms", GROUP, "from the look at a group until its checkpoint was written"),
    Metric("lag-records", "gauge", "records", PARTITION, "offsets that are not copied after the run"),
    Metric(
        "lag-bytes",
        "gauge",
        "bytes",
        PARTITION,
        "their size, by the average of the records that were copied last; not sent where it is not known",
    ),
    Metric(
        "lag-seconds", "gauge", "s", PARTITION, "age of the first record that is not copied; not sent where it could not be read in time"
    ),
    Metric("headroom-seconds", "gauge", "s", PARTITION, "until the source drops it; its retention without lag; not sent where endless"),
    Metric("open-transactions", "gauge", "partitions", FLOW, "partitions on either side that an open transaction holds back"),
    Metric("hanging-transactions", "gauge", "partitions", FLOW, "those of them that are open for too long"),
    Metric("limits-broken", "gauge", "limits", FLOW, "limits of the config that topics are beyond"),
    Metric("run-records", "gauge", "records", FLOW, "appended by the run"),
    Metric("run-bytes", "gauge", "bytes", FLOW, "appended by the run"),
    Metric("run-seconds", "gauge", "s", FLOW, "wall time of the copy"),
    Metric("run-cpu-seconds", "gauge", "s", FLOW, "CPU time of its driver and workers"),
    Metric("run-exit-code", "gauge", "code", FLOW, "the run's [exit code](cli.md#exit-codes)"),
    Metric("run-finished", "gauge", "s", FLOW, "when it was reported, in seconds since 1970"),
    Metric("failed-partitions", "gauge", "partitions", FLOW, "that could not go on"),
    Metric("lost-records", "gauge", "records", FLOW, "offsets of the run that are lost and not acknowledged"),
    Metric("groups-synced", "gauge", "groups", FLOW, "consumer groups that stand on the target where they should"),
    Metric(
        "groups-not-synced",
        "gauge",
        "groups",
        FLOW,
        "consumer groups with a partition that was left alone or failed; `ferry explain` says why",
    ),
    Metric("verify-records", "gauge", "records", FLOW, "compared by a verify"),
    Metric("verify-differences", "gauge", "differences", FLOW, "that it found"),
    Metric("verify-not-compared", "gauge", "parts", FLOW, "parts that it could not compare"),
)

BY_NAME = {metric.name: metric for metric in METRICS}
