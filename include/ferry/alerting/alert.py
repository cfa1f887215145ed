"""One alert, as callbacks get it: for a broken limit, a failed run or a missed deadline.

It holds no secret: its texts are those of Ferry's errors and names of topics.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

ALERT_VERSION = 1


class AlertKind(StrEnum):
    LIMIT = "limit"  # lag or headroom is beyond what the config allows
    FAILURE = "failure"  # a task of a run failed after all retries
    DEADLINE = "deadline"  # a run had not ended in time
    ASSETS = "assets"  # more remote topics were refreshed than may be announced


class Severity(StrEnum):
    """`critical`: data may be lost. `error`: something is not copied. `warning`: it may wait until the morning."""

    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True)
class Alert:
    flow: str
    kind: AlertKind
    severity: Severity
    what: str  # The key of a limit, or the class of an error.
    message: str
    next_step: str
    value: float | None = None  # `value` and `limit` are in the unit of the limit's key; None if it is no limit.
    limit: float | None = None
    run_id: str = ""
    url: str = ""  # The address of the task's log in Airflow, or empty.
    resolved: bool = False  # The problem is over.

    @property
    def key(self) -> str:
        """The same key if the problem repeats in the next run, so that receivers can combine repeated alerts."""
        return f"{self.flow}/{self.kind}/{self.what}"

    def document(self) -> dict[str, Any]:
        return {"version": ALERT_VERSION, "key": self.key, **asdict(self), "kind": self.kind.value, "severity": self.severity.value}
