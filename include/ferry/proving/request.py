"""What one verify is asked to do, as it travels between the CLI, Airflow tasks and the Spark job. It holds no settings and no secrets."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from ferry.copying.request import parse_time
from ferry.errors import ArgumentError


@dataclass(frozen=True)
class VerifyRequest:
    """One verify of one flow. A second try with the same run id goes on where the first one ended.

    `topics` and `partitions` narrow the flow's own to these; empty: all. `since` and `until` bound it by record time at the source.
    """

    flow: str
    run_id: str
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ArgumentError(f"the interval from {self.since.isoformat()} until {self.until.isoformat()} is empty")

    def to_json(self) -> str:
        """As one line of JSON."""
        times = {"since": self.since.isoformat() if self.since else None, "until": self.until.isoformat() if self.until else None}
        return json.dumps({**asdict(self), **times})

    @classmethod
    def from_json(cls, text: str) -> VerifyRequest:
        """The inverse of `to_json`; ArgumentError when it is something else."""
        try:
            fields = json.loads(text)
            request = cls(
                flow=fields["flow"],
                run_id=fields["run_id"],
                topics=tuple(fields["topics"]),
                partitions=tuple(int(number) for number in fields["partitions"]),
                since=parse_time(fields["since"]) if fields["since"] else None,
                until=parse_time(fields["until"]) if fields["until"] else None,
            )
        except (ValueError, KeyError, TypeError) as problem:
            raise ArgumentError(f"not a verify request: {problem}") from problem
        return request
