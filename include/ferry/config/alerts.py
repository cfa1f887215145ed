"""When a flow asks for a person, and whom it tells, as settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ferry.config.problems import Problems
from ferry.config.properties import Entry

LAG_RECORDS = "ferry.alert.lag.records"
LAG_SECONDS = "ferry.alert.lag.seconds"
HEADROOM_SECONDS = "ferry.alert.headroom.seconds"
DEADLINE_SECONDS = "ferry.alert.deadline.seconds"
ASSETS_MAX = "ferry.airflow.assets.max"
CALLBACK = "ferry.alert.callback"
CALLBACK_ARGS = "ferry.alert.callback.args"


@dataclass(frozen=True)
class AlertSettings:
    """Limits of one flow; None: there is none. Lags hold for each topic, see ferry.monitoring.limits; `deadline_seconds` for a whole run.

    `callbacks` are import paths (`package.module:name`), `callback_args` the keyword arguments of each, by its path.
    `assets_max`: how many refreshed topics one run announces as assets.
    """

    lag_records: int | None = None
    lag_seconds: int | None = None
    headroom_seconds: int | None = None
    deadline_seconds: int | None = None
    callbacks: tuple[str, ...] = ()
    callback_args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False, repr=False)
    assets_max: int = 1000

    @property
    def has_limits(self) -> bool:
        """Whether anything is to be checked at the end of a run."""
        return any(limit is not None for limit in (self.lag_records, self.lag_seconds, self.headroom_seconds))


def read_alerts(value: Callable[[str], Any], entry: Callable[[str], Entry | None], problems: Problems) -> AlertSettings:
    """The settings of one flow. `value` gives a property's effective value, `entry` where it stands.

    Names are not imported here: a notifier of Airflow need not be installed where Spark's driver reads the file. Airflow does it when it
    parses the DAGs (ferry.alerting.loading.check_callbacks).
    """
    callbacks = value(CALLBACK)
    args = value(CALLBACK_ARGS) or {}
    settings = AlertSettings(
        value(LAG_RECORDS), value(LAG_SECONDS), value(HEADROOM_SECONDS), value(DEADLINE_SECONDS), callbacks, args, value(ASSETS_MAX)
    )
    given = entry(CALLBACK_ARGS)
    unknown = sorted(set(args) - set(callbacks))
    if unknown and given is not None:
        what = f"gives arguments to {', '.join(unknown)}, which {CALLBACK} does not name"
        problems.add(what, key=given.key, line=given.line)
    return settings
