"""The request of one verify, which the CLI and Airflow tasks send to the Spark job. It holds no settings and no secrets."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ferry.copying.request import JobRequest
from ferry.errors import ArgumentError


class DigestKind(StrEnum):
    """What digests cover (ferry.verify.digests). `stored`: batches as the source stores them. `records`: single records of both sides."""

    STORED = "stored"
    RECORDS = "records"


@dataclass(frozen=True)
class VerifyRequest(JobRequest):
    """One verify of one flow. Another try with the same run id continues where the last one ended."""

    topics: tuple[str, ...] = ()  # only these; empty: all of the flow
    partitions: tuple[int, ...] = ()  # only these; empty: all of the topics
    since: datetime | None = None  # bounds by record time at the source: from `since` on, before `until`
    until: datetime | None = None
    digest: DigestKind = DigestKind.STORED

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ArgumentError(f"the interval from {self.since.isoformat()} until {self.until.isoformat()} is empty")
