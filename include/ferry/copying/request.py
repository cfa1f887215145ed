"""The request for one run, which the CLI and Airflow's tasks send to the Spark job.

It holds no settings and no secrets: those come from the config file. All tries of a run have the same run id (Airflow's run id), because
receipts and results are found in the ledger and the runs topic by it.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from ferry.errors import ArgumentError
from ferry.wire.strict_json import read_as, read_document

# The bound of a run that copies all that the source has when it begins.
LATEST = "latest"
# A run that copies commits at least once a minute, and plans in less than this. A run that writes nothing for this time was killed, and a
# run that follows would wait for it until its own time is over.
SILENT_SECONDS = 600.0


@dataclass(frozen=True)
class JobRequest:
    """Work on one flow that can be sent as text. `optional`: fields that take their default if the text lacks them."""

    flow: str
    run_id: str
    optional: ClassVar[tuple[str, ...]] = ()

    def to_json(self) -> str:
        return json.dumps(vars(self), default=datetime.isoformat)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`. ArgumentError for any other text."""
        try:
            return read_as(cls, read_document(text), optional=cls.optional)
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ArgumentError(f"not a {cls.__name__}: {problem}") from problem


@dataclass(frozen=True)
class RunRequest(JobRequest):
    """One run of one flow."""

    until: datetime | None = None  # where the copy ends, by record time (None: at the source's last stable offset when the run is planned)
    since: datetime | None = None
    backfill: bool = False  # the run also copies the ranges of `[since, until)` below the position that the ledger does not cover
    topics: tuple[str, ...] = ()  # copy only these of the flow's topics; empty: all
    # The run goes on with records that arrive until this moment, or until another run takes the flow over (None: it does not follow).
    follow_until: datetime | None = None
    watched: bool = False  # a person sees in a terminal how far it is
    optional = ("until", "since", "backfill", "topics", "follow_until", "watched")

    def __post_init__(self) -> None:
        if self.backfill and (self.since is None or self.until is None):
            raise ArgumentError(f"run {self.run_id}: a backfill needs both ends of its interval")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ArgumentError(
                f"run {self.run_id}: the interval from {self.since.isoformat()} until {self.until.isoformat()} is empty; "
                "schedules need a data-interval timetable, a plain cron string gives intervals of zero width"
            )
        if self.follow_until is not None and (self.until is not None or self.backfill):
            raise ArgumentError(f"run {self.run_id}: a run that follows has no end of an interval, and fills no gaps")

    @property
    def bound(self) -> str:
        """The end bound as the report names it: `latest`, an ISO time, or that it follows."""
        if self.follow_until is not None:
            return f"following until {self.follow_until.isoformat(timespec='seconds')}"
        return LATEST if self.until is None else self.until.isoformat()


def epoch_milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
