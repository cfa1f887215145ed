"""A run in numbers, under MirrorMaker 2's names and tags (MirrorSourceMetrics, MirrorCheckpointMetrics).

One set for each remote partition that the run appended to, tagged with source and target alias, remote topic and partition; the checkpoint
latency is tagged with the group besides. What differs from MM2: bytes are those of record batches as stored (MM2: of values), rates are
over the run (MM2: over a sliding window), and the age of a record is taken when the target has it, not when the source handed it over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ferry.copying.spread import Spread

if TYPE_CHECKING:
    from ferry.reporting.run_report import PartitionReport, RunReport


@dataclass(frozen=True)
class Measurement:
    """One number. `counter`: it adds up over runs; else it replaces the one before."""

    name: str
    value: float
    tags: Mapping[str, str] = field(default_factory=dict)
    counter: bool = False

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def measurements(report: RunReport, source: str, target: str) -> list[Measurement]:
    """Everything that is measured of a run; `source` and `target` are the aliases."""
    return [
        one for partition in report.partitions for one in _of_partition(partition, report.seconds, {"source": source, "target": target})
    ]


def _spread_measurements(name: str, spread: Spread, tags: Mapping[str, str]) -> Iterator[Measurement]:
    """`name`-min, -max and -avg, in ms."""
    yield Measurement(f"{name}-min", spread.least, tags)
    yield Measurement(f"{name}-max", spread.greatest, tags)
    yield Measurement(f"{name}-avg", round(spread.mean, 1), tags)


def _of_partition(partition: PartitionReport, seconds: float, flow: Mapping[str, str]) -> Iterator[Measurement]:
    if not partition.records:
        return
    tags = {**flow, "topic": partition.remote_topic, "partition": str(partition.partition)}
    yield Measurement("record-count", partition.records, tags, counter=True)
    yield Measurement("byte-count", partition.bytes, tags, counter=True)
    yield Measurement("record-bytes-avg", round(partition.bytes / partition.records, 1), tags)
    if seconds > 0:
        yield Measurement("record-rate", round(partition.records / seconds, 3), tags)
        yield Measurement("byte-rate", round(partition.bytes / seconds, 3), tags)
    for name, spread in (("record-age-ms", partition.record_age_ms), ("replication-latency-ms", partition.replication_latency_ms)):
        if spread is not None:
            yield from _spread_measurements(name, spread, tags)
