"""A flow's partitions as the page shows them: sums by topic and over all, searched, sorted and paged (pure).

A flow may have thousands of topics: what is read is kept as compact rows, and an answer holds one page of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

ROW_FIELDS = (
    "topic",
    "partition",
    "remote_topic",
    "position",
    "end",
    "lag_records",
    "lag_bytes",
    "lag_seconds",
    "headroom_seconds",
    "open_transaction_at",
    "log_start",
)


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One source partition, as of ferry.monitoring.status.PartitionStatus."""

    topic: str
    partition: int
    remote_topic: str
    position: int
    end: int
    lag_records: int
    lag_bytes: int
    lag_seconds: float
    headroom_seconds: float | None
    open_transaction_at: int | None
    log_start: int


@dataclass(frozen=True)
class LagTotals:
    """Over several partitions. Records and bytes are sums, seconds the most, headroom the least. -1: not known of some (bytes), of all that
    lag (seconds)."""

    topics: int
    partitions: int
    lag_records: int
    lag_bytes: int
    lag_seconds: float
    headroom_seconds: float | None


@dataclass(frozen=True)
class TopicRow:
    """One topic."""

    topic: str
    remote_topic: str
    partitions: int
    lag_records: int
    lag_bytes: int
    lag_seconds: float
    headroom_seconds: float | None
    open_transactions: int
    losses: int


@dataclass(frozen=True)
class Overview:
    """What one look at a flow found.

    `losses`: as LossReport with `run_id` and `acknowledged`, those that nobody acknowledged first; `losses_open` counts these, and
    `losses_by_topic` by topic. `stopped`: partitions that the next run will refuse, as PartitionFailure. `open_transactions`: as of
    HeldBack.document. Lists are cut, totals are whole. `heartbeats`: topics that lag does not count of: every run leaves some for the next.
    """

    partitions: tuple[PartitionRow, ...]
    losses: tuple[Mapping[str, Any], ...] = ()
    losses_total: int = 0
    losses_open: int = 0
    stopped: tuple[Mapping[str, Any], ...] = ()
    stopped_total: int = 0
    open_transactions: tuple[Mapping[str, Any], ...] = ()
    losses_by_topic: Mapping[str, int] = field(default_factory=dict)
    heartbeats: frozenset[str] = frozenset()

    @cached_property
    def by_topic(self) -> dict[str, list[PartitionRow]]:
        """Partitions of each topic."""
        found: dict[str, list[PartitionRow]] = {}
        for row in self.partitions:
            found.setdefault(row.topic, []).append(row)
        return found

    @cached_property
    def topics(self) -> tuple[TopicRow, ...]:
        """One row for each topic, by name."""
        return tuple(_topic(name, rows, self.losses_by_topic.get(name, 0)) for name, rows in sorted(self.by_topic.items()))

    @property
    def judged(self) -> tuple[TopicRow, ...]:
        """The topics whose lag counts."""
        return tuple(row for row in self.topics if row.topic not in self.heartbeats)

    @cached_property
    def totals(self) -> LagTotals:
        """Over the whole flow; the lag without that of heartbeats."""
        counted = lag_totals([row for row in self.partitions if row.topic not in self.heartbeats])
        return replace(counted, topics=len(self.by_topic), partitions=len(self.partitions))

    @property
    def overdue(self) -> tuple[Mapping[str, Any], ...]:
        """Open transactions that may hang."""
        return tuple(entry for entry in self.open_transactions if entry.get("overdue"))


def landscape_from(document: Mapping[str, Any]) -> Overview:
    """From what the read sent: partitions as lists in the order of ROW_FIELDS."""
    names: dict[str, str] = {}
    rows = tuple(
        PartitionRow(names.setdefault(row[0], row[0]), row[1], names.setdefault(row[2], row[2]), *row[3:]) for row in document["rows"]
    )
    return Overview(
        rows,
        tuple(document["losses"]),
        document["losses_total"],
        document["losses_open"],
        tuple(document["stopped"]),
        document["stopped_total"],
        tuple(document["open_transactions"]),
        document["losses_by_topic"],
        frozenset(document["heartbeats"]),
    )


def lag_totals(rows: Sequence[PartitionRow]) -> LagTotals:
    """Sums over partitions."""
    seconds = [row.lag_seconds for row in rows if row.lag_records]
    known = [second for second in seconds if second >= 0]
    unknown_bytes = any(row.lag_bytes < 0 for row in rows)
    return LagTotals(
        topics=len({row.topic for row in rows}),
        partitions=len(rows),
        lag_records=sum(row.lag_records for row in rows),
        lag_bytes=-1 if unknown_bytes else sum(row.lag_bytes for row in rows),
        lag_seconds=round(max(known), 3) if known else -1.0 if seconds else 0.0,
        headroom_seconds=min((row.headroom_seconds for row in rows if row.headroom_seconds is not None), default=None),
    )


def _topic(name: str, rows: Sequence[PartitionRow], losses: int) -> TopicRow:
    totals = lag_totals(rows)
    return TopicRow(
        name,
        rows[0].remote_topic,
        totals.partitions,
        totals.lag_records,
        totals.lag_bytes,
        totals.lag_seconds,
        totals.headroom_seconds,
        sum(row.open_transaction_at is not None for row in rows),
        losses,
    )


# A topic without a limit of time comes after all that have one.
_NEVER = float("inf")
SORTS: Mapping[str, Callable[[TopicRow], Any]] = {
    "topic": lambda row: row.topic,
    "lag_records": lambda row: row.lag_records,
    "lag_bytes": lambda row: row.lag_bytes,
    "lag_seconds": lambda row: row.lag_seconds,
    "headroom": lambda row: _NEVER if row.headroom_seconds is None else row.headroom_seconds,
}


def page_of_topics(
    rows: Iterable[TopicRow], *, search: str = "", sort: str = "topic", descending: bool = False, offset: int = 0, limit: int = 50
) -> dict[str, Any]:
    """One page of the topics whose name, here or there, holds `search`; equal ones in order of name. `sort`: a key of SORTS."""
    wanted = search.casefold()
    found = [row for row in rows if wanted in row.topic.casefold() or wanted in row.remote_topic.casefold()]
    found.sort(key=lambda row: row.topic)
    found.sort(key=SORTS[sort], reverse=descending)
    return {"total": len(found), "topics": [asdict(row) for row in found[offset : offset + limit]]}
