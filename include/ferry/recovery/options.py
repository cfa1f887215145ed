"""The options of a failover, failback or cut-over.

`ferry --help` shows some of them, so this module loads no other module of Ferry than the errors.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from ferry.errors import ArgumentError

QUIET_SECONDS = 5.0  # longer than a restart of a client takes
LONGEST_QUIET_SECONDS = 24 * 3600.0


class Tail(StrEnum):
    """What a failback does with records of the source that were never copied."""

    COPY = "copy"
    LEAVE = "leave"


class Mode(StrEnum):
    """Whether a command writes. A rehearsal also asks whether groups may be written, and measures the time."""

    REAL = "real"
    DRY_RUN = "dry-run"
    REHEARSAL = "rehearsal"


@dataclass(frozen=True)
class RecoveryOptions:
    """The options of a person. `only`: an expression for the names of groups. `backwards`: groups whose offset is larger go back too.

    ArgumentError if `only` is no expression.
    """

    command: str
    run_id: str
    mode: Mode = Mode.REAL
    only: str | None = None
    backwards: bool = False

    def __post_init__(self) -> None:
        try:
            re.compile(self.only or "")
        except re.error as problem:
            raise ArgumentError(f"groups {self.only!r} is no regular expression: {problem}") from problem

    @property
    def writes(self) -> bool:
        return self.mode is Mode.REAL

    def part(self, what: str) -> str:
        """The id of a run that is a part of this recovery: one of its copies, its seed or its verify."""
        return f"{self.run_id}__{what}"


def check_quiet(seconds: float) -> None:
    """Check how long nothing may arrive before producers count as stopped. ArgumentError for anything but 0 to 24 h."""
    if not 0 <= seconds <= LONGEST_QUIET_SECONDS:  # refuses not-a-number too
        raise ArgumentError(f"the seconds of quiet must be 0 to {LONGEST_QUIET_SECONDS:.0f}, not {seconds}")
