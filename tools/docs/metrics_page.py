"""The table of `docs/metrics.md`: every metric that Ferry sends. Tests compare the code and the dashboard with it.

Metrics of records and checkpoints have MirrorMaker 2's names and tags. Metrics of a whole run are gauges: each task is a process of its
own, so OpenTelemetry's counters would begin anew with each run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tools.docs.between import between

PAGE = Path("docs/metrics.md")
BEGIN, END = "<!-- metrics: begin -->", "<!-- metrics: end -->"
FLOW = ("source", "target")
TOPIC = (*FLOW, "topic")
PARTITION = (*TOPIC, "partition")
GROUP = (*PARTITION, "group")


@dataclass(frozen=True)
class Metric:
    """One metric. `kind`: a `counter` adds up over runs, a `gauge` replaces its last value."""

    name: str
    kind: str
    unit: str
    tags: tuple[str, ...]
    meaning: str

    @property
    def row(self) -> str:
        """As in the table."""
        return f"| `ferry.{self.name}` | {self.kind} | {self.unit} | {', '.join(self.tags)} | {self.meaning} |"


METRICS: tuple[Metric, ...] = (
    Metric("record-count", "counter", "records", PARTITION, "appended to the remote partition"),
    Metric("byte-count", "counter", "bytes", PARTITION, "appended, of record batches as stored"),
    Metric(
        "record-bytes-avg",
        "gauge",
        "bytes",
        PARTITION,
        "mean size of a record; KIP-382's `-min` and `-max` would need decompressed batches",
    ),
    Metric("record-rate", "gauge", "records/s", PARTITION, "over the run"),
    Metric("byte-rate", "gauge", "bytes/s", PARTITION, "over the run"),
    Metric("record-age-ms", "gauge", "ms", PARTITION, "age of the youngest record of the run's last transaction"),
    Metric("record-age-ms-min", "gauge", "ms", PARTITION, "age of the youngest record when the target had acknowledged it"),
    Metric("record-age-ms-avg", "gauge", "ms", PARTITION, "mean of these ages"),
    Metric("record-age-ms-max", "gauge", "ms", PARTITION, "age of the oldest"),
    Metric("replication-latency-ms", "gauge", "ms", PARTITION, "that of the youngest record of the run's last transaction"),
    Metric("replication-latency-ms-min", "gauge", "ms", PARTITION, "age of the youngest record when its transaction was committed"),
    Metric("replication-latency-ms-avg", "gauge", "ms", PARTITION, "mean of these ages"),
    Metric("replication-latency-ms-max", "gauge", "ms", PARTITION, "age of the oldest"),
    Metric("checkpoint-latency-ms", "gauge", "ms", GROUP, "from reading a group's offsets until its checkpoint was written"),
    *(
        Metric(f"checkpoint-latency-ms-{statistic}", "gauge", "ms", GROUP, "the same: a sync writes each checkpoint once")
        for statistic in ("min", "avg", "max")
    ),
    Metric("lag-records", "gauge", "records", PARTITION, "offsets that are not copied yet at the end of the run"),
    Metric(
        "lag-bytes",
        "gauge",
        "bytes",
        PARTITION,
        "estimated size of these records, by the mean size of the last copied ones; not sent if Ferry does not know that size",
    ),
    Metric(
        "lag-seconds", "gauge", "s", PARTITION, "age of the first uncopied record; not sent if Ferry could not read that record in time"
    ),
    Metric(
        "headroom-seconds",
        "gauge",
        "s",
        PARTITION,
        "time until the source deletes the first uncopied record; if there is no lag, the topic's retention; "
        "not sent if the topic deletes no records by time",
    ),
    Metric(
        "open-transactions",
        "gauge",
        "partitions",
        FLOW,
        "partitions of both sides whose last stable offset an open transaction holds back",
    ),
    Metric(
        "hanging-transactions",
        "gauge",
        "partitions",
        FLOW,
        "those of them whose transaction has been open for [too long](limits.md#open-and-hanging-transactions)",
    ),
    Metric("limits-broken", "gauge", "limits", FLOW, "limits of the config that are broken, counted for each topic"),
    Metric("run-records", "gauge", "records", FLOW, "appended by the run"),
    Metric("run-bytes", "gauge", "bytes", FLOW, "appended by the run"),
    Metric("run-seconds", "gauge", "s", FLOW, "wall time of the copy"),
    Metric("run-cpu-seconds", "gauge", "s", FLOW, "CPU time of its driver and workers"),
    Metric("run-exit-code", "gauge", "code", FLOW, "the run's [exit code](cli.md#exit-codes)"),
    Metric("run-finished", "gauge", "s", FLOW, "when the run ended, in seconds since 1970"),
    Metric("failed-partitions", "gauge", "partitions", FLOW, "partitions that could not be copied"),
    Metric(
        "lost-records", "gauge", "records", FLOW, "offsets that the run lost or that the target refused, and that nobody has acknowledged"
    ),
    Metric("groups-synced", "gauge", "groups", FLOW, "consumer groups whose offsets on the target are up to date"),
    Metric(
        "groups-not-synced",
        "gauge",
        "groups",
        FLOW,
        "consumer groups with a partition that Ferry left out or could not write; `ferry explain` says why",
    ),
    Metric("verify-records", "gauge", "records", FLOW, "records that a verify compared"),
    Metric("verify-differences", "gauge", "differences", FLOW, "differences that it found"),
    Metric("verify-not-compared", "gauge", "parts", FLOW, "parts that it could not compare"),
)


def page() -> str:
    """The whole page, with the current table."""
    rows = "".join(f"{metric.row}\n" for metric in METRICS)
    return between(PAGE.read_text(encoding="utf-8"), BEGIN, END, f"| metric | kind | unit | tags | |\n|---|---|---|---|---|\n{rows}")
