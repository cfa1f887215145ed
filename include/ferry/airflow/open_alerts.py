"""Remembers the alerts of a task that are not resolved yet. So Ferry says once that an alert is over.

They are in a Variable of Airflow, because that outlives the run. Airflow's DAG processor can write it too: it sends the alert about a task
that died. The Variable exists only while an alert is open. If Ferry cannot read or write it, it sends the alerts all the same.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from airflow.sdk import Variable

from ferry.alerting.alert import Alert
from ferry.alerting.delivering import deliver
from ferry.config.settings import AlertSettings
from ferry.wire.strict_json import read_as

PREFIX = "ferry_open_alerts"
# The parameters that limit what a run does.
Part = Mapping[str, Any]
NO_PART: Part = {}

log = logging.getLogger(__name__)


def tell(
    settings: AlertSettings, task: Any, run_id: str, found: Iterable[Alert], *, is_all: bool, part: Part = NO_PART, task_id: str = ""
) -> None:
    """Send the alerts that the task has `found`. `is_all`: nothing else is wrong, so earlier alerts that are not in `found` are resolved.

    `part`: the parameters that limit the run; then only alerts of runs with the same limits are resolved. `task`: the task instance;
    `task_id`: of another task of its run, whose alerts these are.
    """
    if not settings.callbacks:
        return
    place = f"{PREFIX}.{task.dag_id}.{task_id or task.task_id}"
    new = {alert.key: alert for alert in found}
    before = _tried(lambda: _read(place)) or {}
    over = [alert for key, (alert, of) in before.items() if key not in new and part in (NO_PART, of)] if is_all else []
    left = before | {alert.key: (alert, part) for alert in new.values()}
    for alert in over:
        del left[alert.key]
    kept = _tried(lambda: _keep(place, left)) if left or before else None
    ended = [resolved(alert, run_id, str(task.log_url)) for alert in over] if kept else []  # otherwise the next run would say it again
    deliver(settings, [*ended, *new.values()])


def resolved(alert: Alert, run_id: str, url: str) -> Alert:
    """The alert with the message that it is over. `run_id`: the run that found this."""
    return replace(alert, resolved=True, message=f"resolved: {alert.message}", next_step="", run_id=run_id, url=url)


def _keep(place: str, alerts: Mapping[str, tuple[Alert, Part]]) -> bool:
    if alerts:
        Variable.set(place, [{**asdict(alert), **({"part": part} if part else {})} for alert, part in alerts.values()], serialize_json=True)
    else:
        Variable.delete(place)
    return True


def _read(place: str) -> dict[str, tuple[Alert, Part]]:
    written = Variable.get(place, default=None, deserialize_json=True) or ()
    read = ((document.pop("part", NO_PART), read_as(Alert, document)) for document in written)
    return {alert.key: (alert, part) for part, alert in read}


def _tried(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Exception as trouble:  # noqa: BLE001 - an error of Airflow or of a secrets backend, or a value that Ferry did not write
        log.warning("open alerts could not be remembered: %s", type(trouble).__name__)
        return None
