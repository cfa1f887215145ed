"""A flow's partitions as the page shows them: sums for each topic and for the flow, searched, sorted and cut into pages (pure).

A flow may have thousands of topics. So an overview keeps what was read as compact rows, and an answer holds one page of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from ferry.clusters.net.partitions import grouped
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import Lag, PartitionStatus, lag_of
from ferry.monitoring.missing import missing_by_topic
from ferry.wire.strict_json import read_as

# What the page shows of a partition.
SHOWN = tuple(entry.name for entry in fields(PartitionStatus) if entry.name not in {"retention_seconds", "heartbeats", "series"})


@dataclass(frozen=True)
class TopicRow:
    topic: str
    remote_topic: str
    partitions: int
    lag_records: int
    lag_bytes: int
    lag_seconds: float
    headroom_seconds: float | None
    open_transactions: int
    losses: int
    missing: int


@dataclass(frozen=True)
class Overview:
    """A flow's health, and what only the page shows. The lists may be cut; the totals count everything."""

    health: FlowHealth
    losses: Sequence[Mapping[str, Any]] = ()  # as LossReport, with `run_id` and `acknowledged`; those that nobody acknowledged come first
    losses_total: int = 0
    losses_by_topic: Mapping[str, int] = field(default_factory=dict)  # those that nobody acknowledged
    left_out: Sequence[str] = ()  # as of left_out_lines

    @cached_property
    def missing_by_topic(self) -> dict[str, int]:
        return missing_by_topic(self.health.missing)

    @property
    def missing_topics(self) -> Iterator[dict[str, Any]]:
        """Topics with missing records. `closable`: a backfill copies at least some of them. These topics come first, most records first."""
        closable = {entry.topic for entry in self.health.missing if entry.closable}
        found = sorted(self.missing_by_topic.items(), key=lambda pair: pair[0] not in closable)
        return ({"topic": topic, "records": records, "closable": topic in closable} for topic, records in found)

    @cached_property
    def by_topic(self) -> dict[str, list[PartitionStatus]]:
        return grouped((entry.topic, entry) for entry in self.health.partitions)

    @cached_property
    def topics(self) -> tuple[TopicRow, ...]:
        """One row for each topic, by name."""
        return tuple(
            TopicRow(
                topic=name,
                remote_topic=rows[0].remote_topic,
                partitions=len(rows),
                **_shown(lag_of(rows)),
                open_transactions=sum(row.open_transaction_at is not None for row in rows),
                losses=self.losses_by_topic.get(name, 0),
                missing=self.missing_by_topic.get(name, 0),
            )
            for name, rows in sorted(self.by_topic.items())
        )

    @property
    def totals(self) -> dict[str, Any]:
        """A JSON object: how many topics and partitions there are, and their lag."""
        return {"topics": len(self.by_topic), "partitions": len(self.health.partitions), **_shown(self.health.lag)}


def overview_from(document: Mapping[str, Any]) -> Overview:
    """The inverse of flow_reading.read_overview, which sends each partition as a list of PartitionStatus's fields."""
    names: dict[str, str] = {}
    rows = tuple(
        PartitionStatus(names.setdefault(row[0], row[0]), row[1], names.setdefault(row[2], row[2]), *row[3:]) for row in document["rows"]
    )
    others = {name: value for name, value in document.items() if name not in {"rows", "health"}}
    return Overview(replace(read_as(FlowHealth, document["health"]), partitions=rows), **others)


def _shown(lag: Lag) -> dict[str, Any]:
    return {**lag.totals, "headroom_seconds": lag.headroom_seconds}


# Sorts topics without headroom behind the others.
_NEVER = float("inf")
SORTS: Mapping[str, Callable[[TopicRow], Any]] = {
    **{name: attrgetter(name) for name in ("topic", "lag_records", "lag_bytes", "lag_seconds", "missing")},
    "headroom": lambda row: _NEVER if row.headroom_seconds is None else row.headroom_seconds,
}


def page_of_topics(
    rows: Iterable[TopicRow], *, search: str = "", sort: str = "topic", descending: bool = False, offset: int = 0, limit: int = 50
) -> dict[str, Any]:
    """One page of the topics whose source or remote name contains `search`. `sort`: a key of SORTS; topics that are equal come by name."""
    wanted = search.casefold()
    found = [row for row in rows if wanted in row.topic.casefold() or wanted in row.remote_topic.casefold()]
    found.sort(key=lambda row: row.topic)
    found.sort(key=SORTS[sort], reverse=descending)
    return {"total": len(found), "topics": [asdict(row) for row in found[offset : offset + limit]]}
