"""A flow's health as its clusters, its ledger, its runs topic and Airflow show it.

One dataclass holds it. The verdict, `ferry status`, `ferry watch`, the Ferry page, `ferry doctor`, metrics and alerts are made from it. The
api-server reads it from JSON, so this module and all that it imports load no Kafka client.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from ferry.clusters.logs.held_back import LastStableLag
from ferry.copying.committed import Progress
from ferry.ledger.run_report import LossReport, PartitionFailure, Skipped
from ferry.monitoring.lag import Lag, PartitionStatus, counted, lag_of
from ferry.monitoring.limits import BrokenLimit
from ferry.monitoring.missing import Missing


class Problem(Protocol):
    """Why the flow could not be read."""

    @property
    def message(self) -> str: ...

    @property
    def next_step(self) -> str: ...

    @property
    def unreachable(self) -> bool:
        """Whether a cluster could not be read at all."""


@dataclass(frozen=True)
class FlowHealth:
    """What is known of a flow's health. Lists may be cut. Where `…_cut` says how much is beyond a list, the totals count that too."""

    flow: str
    partitions: tuple[PartitionStatus, ...] = ()
    last_stable_lags: tuple[LastStableLag, ...] = ()
    lacking: tuple[Skipped, ...] = ()  # what the releases of its clusters cannot do
    stage: str = "replicating"  # a ferry.ledger.recovery_record.Stage
    stage_since: int = 0  # when groups began to move, in ms; 0 while the flow replicates
    left_out: tuple[Skipped, ...] = ()  # topics that it does not copy
    left_out_records: int | None = None  # of those that people expect to be copied: what the source has and no run copied. None: not known
    losses: tuple[LossReport, ...] = ()  # those that nobody acknowledged
    expired: tuple[LossReport, ...] = ()  # those that no run has written down yet
    missing: tuple[Missing, ...] = ()  # a look after a run does not look for it
    stopped: tuple[PartitionFailure, ...] = ()  # partitions (-1: whole topics) that the next run will not copy
    broken: tuple[BrokenLimit, ...] = ()  # limits of `ferry.alert.*` that it exceeds
    # Runs, as JSON. `following`: `run_id`, `since` and `until` of the run that follows now. `gone`: the same of a run that should follow,
    # but no longer proves that it goes on: it was killed.
    following: Mapping[str, Any] | None = None
    gone: Mapping[str, Any] | None = None
    last_run: Mapping[str, Any] | None = None  # as of runs.last_ended
    newest_run: Mapping[str, Any] | None = None  # may go on
    last_verify: Mapping[str, Any] | None = None  # the newest report
    held_groups: Mapping[str, Any] | None = None  # as in runs
    records_per_second: float | None = None  # how fast the last runs copied
    commits: Progress | None = None  # of the run that copies now, in the last minute. None: no run does, or nobody looked
    commits_left: int = 0  # how many records this run has still to copy; 0: not known
    seeded: str | None = None  # when the last seed began (ISO)
    next_due: float | None = None  # when the next run of the schedule is due, in seconds since the epoch
    on_arrival: bool = False  # runs also begin when records arrive
    interval_seconds: float | None = None  # of the schedule
    config: str = "mm2.properties"  # the path of the file
    read: bool = True  # False: its clusters were never read
    ran: bool = True  # the target knows of a run
    paused: bool = False  # its DAG is
    problem: Problem | None = None  # why the last read failed
    losses_cut: int = 0
    lost_records_cut: int = 0
    stopped_cut: int = 0
    left_out_cut: int = 0  # of those that people expect to be copied

    @cached_property
    def counted(self) -> tuple[PartitionStatus, ...]:
        return counted(self.partitions)

    @cached_property
    def lag(self) -> Lag:
        return lag_of(self.counted)

    @property
    def losses_total(self) -> int:
        return len(self.losses) + self.losses_cut

    @property
    def lost_records(self) -> int:
        """Offsets of all losses."""
        return sum(loss.records for loss in self.losses) + self.lost_records_cut

    @property
    def held(self) -> tuple[LastStableLag, ...]:
        """Transactions that have been open for too long."""
        return tuple(entry for entry in self.last_stable_lags if entry.overdue)
