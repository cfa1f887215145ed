"""The request of one verify, which the CLI and Airflow tasks send to the Spark job. It holds no settings and no secrets."""

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from ferry.errors import ArgumentError
from ferry.wire.documents import read_as, read_document


class DigestKind(StrEnum):
    """What digests cover (ferry.verify.digests). `stored`: batches as the source stores them. `records`: single records of both sides."""

    STORED = "stored"
    RECORDS = "records"


@dataclass(frozen=True)
class VerifyRequest:
    """One verify of one flow. Another try with the same run id continues where the last one ended.

    `topics` and `partitions`: only these; empty: all of the flow. `since` and `until`: bounds by record time at the source.
    """

    flow: str
    run_id: str
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    digest: DigestKind = DigestKind.STORED

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ArgumentError(f"the interval from {self.since.isoformat()} until {self.until.isoformat()} is empty")

    def to_json(self) -> str:
        return json.dumps(vars(self), default=datetime.isoformat)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`; ArgumentError when it is something else."""
        try:
            return read_as(cls, read_document(text))
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ArgumentError(f"not a verify request: {problem}") from problem
