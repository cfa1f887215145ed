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

log = logging.getLogger(__name__)


def tell(settings: AlertSettings, task: Any, run_id: str, found: Iterable[Alert], *, is_all: bool, task_id: str = "") -> None:
    """Send the alerts that the task has `found`. `is_all`: nothing else is wrong, so earlier alerts that are not in `found` are resolved.

    `task`: the task instance; `task_id`: of another task of its run, whose alerts these are.
    """
    if not settings.callbacks:
        return
    place = f"{PREFIX}.{task.dag_id}.{task_id or task.task_id}"
    new = {alert.key: alert for alert in found}
    before = _tried(lambda: _read(place)) or {}
    over = [alert for key, alert in before.items() if key not in new] if is_all else []
    left = new if is_all else {**before, **new}
    kept = _tried(lambda: _keep(place, left)) if left or before else None
    ended = [resolved(alert, run_id, str(task.log_url)) for alert in over] if kept else []  # otherwise the next run would say it again
    deliver(settings, [*ended, *new.values()])


def resolved(alert: Alert, run_id: str, url: str) -> Alert:
    """The alert with the message that it is over. `run_id`: the run that found this."""
    return replace(alert, resolved=True, message=f"resolved: {alert.message}", next_step="", run_id=run_id, url=url)


def _keep(place: str, alerts: Mapping[str, Alert]) -> bool:
    if alerts:
        Variable.set(place, list(map(asdict, alerts.values())), serialize_json=True)
    else:
        Variable.delete(place)
    return True


def _read(place: str) -> dict[str, Alert]:
    written = Variable.get(place, default=None, deserialize_json=True) or ()
    return {alert.key: alert for alert in (read_as(Alert, document) for document in written)}


def _tried(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Exception as trouble:  # noqa: BLE001 - an error of Airflow or of a secrets backend, or a value that Ferry did not write
        log.warning("open alerts could not be remembered: %s", type(trouble).__name__)
        return None
