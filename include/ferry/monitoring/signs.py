"""What is known of a flow's health, of its clusters, its ledger, its runs topic and Airflow: the verdict is made of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ferry.errors import count_of, span
from ferry.ledger.run_report import LossReport, PartitionFailure
from ferry.monitoring.lag import Lag
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
class Held:
    """A partition where a transaction is open: `topic` at the source, `place` where it is open, `waiting`: offsets from its first on.

    `seconds`: for how long it is open (None: not known).
    """

    topic: str
    place: str
    waiting: int
    remedy: str
    seconds: float | None = None

    def __str__(self) -> str:
        open_for = "" if self.seconds is None else f"open for {span(self.seconds)}, "
        return f"{self.place} ({open_for}{count_of(self.waiting, 'record')} {'waits' if self.waiting == 1 else 'wait'} behind it)"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What clusters, ledger and runs topic say of a flow's health.

    `losses`: those that nobody acknowledged. `expired`: those that no run has written down yet. `missing`: as of missing.py. `stopped`:
    partitions (-1: whole topics) that the next run will not copy. `broken`: the limits of `ferry.alert.*` that it exceeds. `last_run`: as
    of runs.last_ended; `newest_run` may go on; `last_verify`: the newest report. `ran`: the target knows of a run. `interval_seconds` of
    the schedule. `held_groups`: as in runs. `records_per_second`: how fast the last runs copied. `config`: the path of the file.
    """

    losses: tuple[LossReport, ...] = ()
    expired: tuple[LossReport, ...] = ()
    missing: tuple[Missing, ...] = ()
    stopped: tuple[PartitionFailure, ...] = ()
    broken: tuple[BrokenLimit, ...] = ()
    last_run: Mapping[str, Any] | None = field(default=None, hash=False)
    newest_run: Mapping[str, Any] | None = field(default=None, hash=False)
    last_verify: Mapping[str, Any] | None = field(default=None, hash=False)
    held_groups: Mapping[str, Any] | None = field(default=None, hash=False)
    ran: bool = True
    interval_seconds: float | None = None
    records_per_second: float | None = None
    config: str = "mm2.properties"


@dataclass(frozen=True)
class Signs(Evidence):
    """What is known about a flow. The lists may be cut; totals count all.

    `lag` None: nothing was read yet. The losses have `lost_records` offsets. `held`: transactions that have been open for too long.
    `problem`: why the last read failed. `paused`: the DAG is.
    """

    flow: str
    lag: Lag | None = None
    losses_total: int = 0
    lost_records: int = 0
    stopped_total: int = 0
    held: tuple[Held, ...] = ()
    problem: Problem | None = None
    paused: bool = False
