"""The request for one run, which the CLI and Airflow's tasks send to the Spark job.

It holds no settings and no secrets: those come from the config file. All tries of a run have the same run id (Airflow's run id), because
receipts and results are found in the ledger and the runs topic by it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ferry.errors import ArgumentError
from ferry.wire.documents import read_document
from ferry.wire.documents import text as text_of


@dataclass(frozen=True)
class RunRequest:
    """One run of one flow.

    `until`: where the copy ends, by record time (None: at the source's last stable offset when the run is planned). With `backfill`, the
    run also copies the ranges of `[since, until)` below the position that the ledger does not cover. `topics`: copy only these of the
    flow's topics; empty: all.
    """

    flow: str
    run_id: str
    until: datetime | None = None
    since: datetime | None = None
    backfill: bool = False
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.backfill and (self.since is None or self.until is None):
            raise ArgumentError(f"run {self.run_id}: a backfill needs both ends of its interval")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ArgumentError(
                f"run {self.run_id}: the interval from {self.since.isoformat()} until {self.until.isoformat()} is empty; "
                "schedules need a data-interval timetable, a plain cron string gives intervals of zero width"
            )

    @property
    def bound(self) -> str:
        """The end bound as the report names it: `latest` or an ISO time."""
        return "latest" if self.until is None else self.until.isoformat()

    def to_json(self) -> str:
        """As one line of JSON, without secrets."""
        return json.dumps(
            {
                "flow": self.flow,
                "run_id": self.run_id,
                "until": self.until.isoformat() if self.until else None,
                "since": self.since.isoformat() if self.since else None,
                "backfill": self.backfill,
                "topics": list(self.topics),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> RunRequest:
        """The inverse of `to_json`. ArgumentError for any other text."""
        try:
            fields = read_document(text)
            request = cls(
                flow=text_of(fields["flow"]),
                run_id=text_of(fields["run_id"]),
                until=parse_time(fields["until"]) if fields.get("until") else None,
                since=parse_time(fields["since"]) if fields.get("since") else None,
                backfill=bool(fields.get("backfill", False)),
                topics=tuple(text_of(topic) for topic in fields.get("topics", ())),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ArgumentError(f"not a run request: {problem}") from problem
        return request

    def narrowed(self, *topics: str) -> RunRequest:
        """The same run over these source topics only."""
        return replace(self, topics=topics)


def parse_time(text: str) -> datetime:
    """An ISO 8601 time; without an offset it is UTC. ValueError when it is not one."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def epoch_milliseconds(moment: datetime) -> int:
    """Record time of `moment` in ms since the epoch."""
    return round(moment.timestamp() * 1000)
