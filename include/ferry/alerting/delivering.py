"""Calls every alert callback of the config. It never raises, and never takes longer than DELIVERY_SECONDS.

Each callback runs in a daemon thread of its own; one that hangs ends with the process. If a callback raises or does not return in time,
Ferry logs this. It logs only the class of the exception, because its text may contain a webhook's address, which is a secret.
"""

import logging
import time
from collections.abc import Iterable
from threading import Thread

from ferry.alerting.alert import Alert
from ferry.alerting.loading import load_callback
from ferry.config.settings import AlertSettings

# For all callbacks together: a receiver that does not answer must not hold a run's task and its slot.
DELIVERY_SECONDS = 15.0

log = logging.getLogger(__name__)


def deliver(settings: AlertSettings, alerts: Iterable[Alert], *, seconds: float = DELIVERY_SECONDS) -> list[str]:
    """Call all callbacks concurrently, each with every alert; the problems, one line each."""
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
            problems.append(f"callback {name} did not return within {seconds:g} s: Ferry does not wait any longer")
    for problem in problems:
        log.warning(problem)
    return list(problems)


def _call(name: str, settings: AlertSettings, alerts: list[Alert], problems: list[str]) -> None:
    """Each alert by itself: after an error a receiver may still take the next one."""
    for alert in alerts:
        try:
            load_callback(name, settings.callback_args.get(name, {}))(alert)
        except BaseException as problem:  # noqa: BLE001 - no error of a callback, SystemExit included, may end the run
            problems.append(f"callback {name} failed: {type(problem).__name__}")
