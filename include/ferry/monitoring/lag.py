"""How far partitions are behind, and the summary of it: for a topic, for a flow, for the end of a run (pure).

Heartbeats do not count as lag: every run leaves some of them for the next run, so a flow would never be up to date.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ferry.ledger.run_summary import RunLag


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    topic: str
    partition: int
    remote_topic: str
    position: int
    end: int
    lag_records: int  # in offsets, so control records count too
    lag_bytes: int  # by the average size of the records that were copied last; -1: not known
    lag_seconds: float  # age of the first uncopied record; -1: not known
    headroom_seconds: float | None  # until the source drops the first uncopied record by time. None: never, or there is no such record
    open_transaction_at: int | None  # the source's last stable offset, if an open transaction holds it back. None: none does
    log_start: int  # the first offset that the source still has
    retention_seconds: float | None = None  # after this time the source drops a record. None: never by time
    heartbeats: bool = False  # it holds heartbeats
    series: str = ""  # the run whose seed set the position; empty: the first position

    @property
    def age_unknown(self) -> bool:
        """Whether the first uncopied record could not be read: then nobody knows when the source drops it."""
        return self.lag_records > 0 and self.lag_seconds < 0


@dataclass(frozen=True)
class Lag:
    records: int
    bytes: int  # -1 if the size is not known for some partition, because a sum without it would look complete
    seconds: float  # age of the oldest uncopied record that could be read (-1: none could, 0: there is no lag)
    headroom_seconds: float | None  # the least that is known (None: the source drops nothing by time, or there is no lag)
    unknown_ages: int  # partitions whose first uncopied record could not be read

    @property
    def totals(self) -> dict[str, float]:
        """The sums by their names in JSON documents."""
        return {"lag_records": self.records, "lag_bytes": self.bytes, "lag_seconds": self.seconds}

    @property
    def of_run(self) -> RunLag:
        """The lag in the form of the runs topic's history."""
        headroom = self.headroom_seconds
        return RunLag(self.records, round(self.seconds, 3), None if headroom is None else round(headroom, 3))


def lag_of(partitions: Iterable[PartitionStatus]) -> Lag:
    """The summary of these partitions, heartbeats too where they are among them."""
    behind = [entry for entry in partitions if entry.lag_records]
    return Lag(
        records=sum(entry.lag_records for entry in behind),
        bytes=-1 if any(entry.lag_bytes < 0 for entry in behind) else sum(entry.lag_bytes for entry in behind),
        seconds=max((entry.lag_seconds for entry in behind), default=0.0),
        headroom_seconds=min((entry.headroom_seconds for entry in behind if entry.headroom_seconds is not None), default=None),
        unknown_ages=sum(entry.age_unknown for entry in behind),
    )


def counted(partitions: Iterable[PartitionStatus]) -> tuple[PartitionStatus, ...]:
    """The partitions whose lag counts: all but those of heartbeats."""
    return tuple(entry for entry in partitions if not entry.heartbeats)
