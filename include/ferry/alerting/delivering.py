"""Handing alerts to every callback that the config names: never raises, never takes longer than DELIVERY_SECONDS.

Each callback runs in a daemon thread of its own: one that hangs is left behind, and ends with the process. What a callback raised, or that
it did not return in time, is logged, by its kind only: the text of a foreign exception may hold a webhook's address, which is a secret.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from threading import Thread
from typing import TYPE_CHECKING

from ferry.alerting.alert import Alert
from ferry.alerting.loading import load_callback

if TYPE_CHECKING:
    from ferry.config.settings import AlertSettings

# All callbacks together: a receiver that is away must not keep a run's task, or the slot that it holds.
DELIVERY_SECONDS = 15.0

log = logging.getLogger(__name__)


def deliver(settings: AlertSettings, alerts: Iterable[Alert], *, seconds: float = DELIVERY_SECONDS) -> list[str]:
    """Call every callback with every alert, side by side; what went wrong, one line each."""
    problems: list[str] = []
    threads = []
    told = list(alerts)
    for name in settings.callbacks if told else ():
        thread = Thread(target=_call, args=(name, settings, told, problems), name=f"alert {name}", daemon=True)
        thread.start()
        threads.append((name, thread))
    ends = time.monotonic() + seconds
    for name, thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
        if thread.is_alive():
            problems.append(f"callback {name} did not return within {seconds:g} s: it is left alone")
    for problem in problems:
        log.warning(problem)
    return list(problems)


def _call(name: str, settings: AlertSettings, alerts: list[Alert], problems: list[str]) -> None:
    """Each alert for itself: a receiver that does not take one may take the next."""
    for alert in alerts:
        try:
            load_callback(name, settings.callback_args.get(name, {}))(alert)
        except BaseException as problem:  # noqa: BLE001 - whatever it raises, SystemExit included, it is not the run's
            problems.append(f"callback {name} failed: {type(problem).__name__}")
