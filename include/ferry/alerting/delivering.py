"""The alert callbacks that the config names: a function, a class that is called with the alert, or a notifier of Airflow.

Ferry recognises a notifier by its `notify` method (airflow.sdk.BaseNotifier), so it imports nothing of Airflow here.

Each callback runs in a daemon thread of its own; one that hangs ends with the process. If a callback raises or does not return in time,
Ferry logs this. It logs only the class of the exception, because its text may contain a webhook's address, which is a secret.
"""

import asyncio
import inspect
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from ferry import clock
from ferry.alerting.alert import Alert
from ferry.config.settings import AlertSettings
from ferry.errors import ConfigError
from ferry.handling.loading import find

# For all callbacks together: a receiver that does not answer must not hold a run's task and its slot.
DELIVERY_SECONDS = 15.0

log = logging.getLogger(__name__)


def deliver(settings: AlertSettings, alerts: Iterable[Alert]) -> list[str]:
    """Call all callbacks concurrently, each with every alert; the problems, one line each. Never raises; takes DELIVERY_SECONDS at most."""
    problems: list[str] = []
    threads = []
    told = list(alerts)
    for name in settings.callbacks if told else ():
        thread = clock.Thread(target=_call, args=(name, settings, told, problems), name=f"alert {name}", daemon=True)
        thread.start()
        threads.append((name, thread))
    ends = clock.monotonic() + DELIVERY_SECONDS
    for name, thread in threads:
        thread.join(max(0.0, ends - clock.monotonic()))
        if thread.is_alive():
            problems.append(f"callback {name} did not return within {DELIVERY_SECONDS:g} s: Ferry does not wait any longer")
    for problem in problems:
        log.warning(problem)
    return list(problems)


def _call(name: str, settings: AlertSettings, alerts: list[Alert], problems: list[str]) -> None:
    """Each alert by itself: after an error a receiver may still take the next one."""
    for alert in alerts:
        try:
            _hand_over(alert, name, settings.callback_args.get(name, {}))
        except BaseException as problem:  # noqa: BLE001 - no error of a callback, SystemExit included, may end the run
            problems.append(f"callback {name} failed: {type(problem).__name__}")


def check_callback(name: str, args: Mapping[str, Any]) -> None:
    """ConfigError if `name` is nothing that can be called with an alert and these keyword arguments."""
    found = find(name)
    if not callable(found):
        raise ConfigError(f"{name} cannot be called: name a function that takes the alert, or a notifier's class")
    try:
        # A class is made with the arguments and called later; a function takes the alert and the arguments at once.
        inspect.signature(found).bind(*(() if inspect.isclass(found) else (None,)), **args)
    except TypeError as problem:
        raise ConfigError(f"{name} cannot be called with an alert and its ferry.alert.callback.args: {problem}") from problem
    except ValueError:  # a built-in without a signature
        return
    if inspect.isclass(found) and not callable(getattr(found, "notify", None)) and "__call__" not in dir(found):
        raise ConfigError(f"{name} has neither notify nor __call__")


def check_callbacks(settings: AlertSettings) -> None:
    """ConfigError for the first callback that cannot be called."""
    for name in settings.callbacks:
        check_callback(name, settings.callback_args.get(name, {}))


def _hand_over(alert: Alert, name: str, args: Mapping[str, Any]) -> None:
    check_callback(name, args)
    found: Any = find(name)
    if not inspect.isclass(found):
        result = found(alert, **args)
    elif callable(getattr(found, "notify", None)):
        # Its own __call__ hides exceptions, and the log must show a lost alert. Its templates see the alert: "{{ alert.message }}".
        context = {"alert": alert, "run_id": alert.run_id, "exception": alert.message}
        notifier: Any = found(**args)
        if hasattr(notifier, "render_template_fields"):
            notifier.render_template_fields(context)
        result = notifier.notify(context)
    else:
        made: Any = found(**args)
        result = made(alert)
    if inspect.isawaitable(result):
        asyncio.run(asyncio.wait_for(result, None))  # asyncio.run takes only coroutines
