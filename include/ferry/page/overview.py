"""A flow's partitions as the page shows them: sums by topic and over all, searched, sorted and paged (pure).

A flow may have thousands of topics: what is read is kept as compact rows, and an answer holds one page of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from ferry.monitoring.lag import Lag, PartitionStatus, by_topic, counted, lag_of

# What the page shows of a partition.
SHOWN_FIELDS = (
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
    HeldBack.document. Lists are cut, totals are whole.
    """

    partitions: tuple[PartitionStatus, ...]
    losses: tuple[Mapping[str, Any], ...] = ()
    losses_total: int = 0
    losses_open: int = 0
    stopped: tuple[Mapping[str, Any], ...] = ()
    stopped_total: int = 0
    open_transactions: tuple[Mapping[str, Any], ...] = ()
    losses_by_topic: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def by_topic(self) -> dict[str, list[PartitionStatus]]:
        """Partitions of each topic."""
        return by_topic(self.partitions)

    @cached_property
    def topics(self) -> tuple[TopicRow, ...]:
        """One row for each topic, by name."""
        return tuple(_topic(name, rows, self.losses_by_topic.get(name, 0)) for name, rows in sorted(self.by_topic.items()))

    @cached_property
    def lag(self) -> Lag:
        """Of the whole flow."""
        return lag_of(counted(self.partitions))

    @property
    def totals(self) -> dict[str, Any]:
        """As JSON: how many topics and partitions there are, and their lag."""
        return {"topics": len(self.by_topic), "partitions": len(self.partitions), **_shown(self.lag)}

    @property
    def overdue(self) -> tuple[Mapping[str, Any], ...]:
        """Open transactions that may hang."""
        return tuple(entry for entry in self.open_transactions if entry.get("overdue"))


def landscape_from(document: Mapping[str, Any]) -> Overview:
    """From what the read sent: partitions as lists in the order of PartitionStatus."""
    names: dict[str, str] = {}
    rows = tuple(
        PartitionStatus(names.setdefault(row[0], row[0]), row[1], names.setdefault(row[2], row[2]), *row[3:]) for row in document["rows"]
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
    )


def _shown(lag: Lag) -> dict[str, Any]:
    """-1: not known, of some partition (bytes) or of all that lag (seconds)."""
    return {
        "lag_records": lag.records,
        "lag_bytes": -1 if lag.unknown_sizes else lag.known_bytes,
        "lag_seconds": round(lag.seconds, 3),
        "headroom_seconds": lag.headroom_seconds,
    }


def _topic(name: str, rows: Sequence[PartitionStatus], losses: int) -> TopicRow:
    return TopicRow(
        topic=name,
        remote_topic=rows[0].remote_topic,
        partitions=len(rows),
        **_shown(lag_of(rows)),
        open_transactions=sum(row.open_transaction_at is not None for row in rows),
        losses=losses,
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
