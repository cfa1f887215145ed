"""What a callback is given: one alert, the same for a broken limit, a failed run and a missed deadline.

It holds what a person needs to decide whether to get up: which flow, what, how bad, what to do next. It never holds a secret: its texts are
those of Ferry's errors and names of topics.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

ALERT_VERSION = 1


class AlertKind(StrEnum):
    """What happened."""

    LIMIT = "limit"  # lag or headroom is beyond what the config allows
    FAILURE = "failure"  # a task of a run failed for good
    DEADLINE = "deadline"  # a run had not ended in time
    ASSETS = "assets"  # more remote topics were refreshed than may be announced


class Severity(StrEnum):
    """How bad: `critical` may cost data, `error` keeps something from being copied, `warning` may wait until the morning."""

    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True)
class Alert:
    """One alert. `what` names it (a limit's key, an error's class); `value` and `limit` are in the unit of the limit's key, if it has any.

    `url` leads to the task's log in Airflow, empty where there is none.
    """

    flow: str
    kind: AlertKind
    severity: Severity
    what: str
    message: str
    next_step: str
    value: float | None = None
    limit: float | None = None
    run_id: str = ""
    url: str = ""

    @property
    def key(self) -> str:
        """The same for the same trouble in the next run: for receivers that fold repeated alerts into one."""
        return f"{self.flow}/{self.kind}/{self.what}"

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"version": ALERT_VERSION, "key": self.key, **{name: _plain(value) for name, value in asdict(self).items()}}


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value
