"""From `package.module:name` to a callback: a function, a class that is called with the alert, or a notifier of Airflow.

Ferry recognises a notifier by its `notify` method (airflow.sdk.BaseNotifier), so it imports nothing of Airflow here.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ferry.alerting.alert import Alert
from ferry.config.settings import AlertSettings
from ferry.errors import ConfigError
from ferry.handling.loading import find

Deliver = Callable[[Alert], Any]


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


def load_callback(name: str, args: Mapping[str, Any]) -> Deliver:
    """The function to call with each alert. ConfigError."""
    check_callback(name, args)
    found: Any = find(name)

    def deliver(alert: Alert) -> None:
        if not inspect.isclass(found):
            _finished(found(alert, **args))
        elif callable(getattr(found, "notify", None)):
            # A notifier's templates see the alert: "{{ alert.message }}".
            _finished(_rendered(found(**args), alert))
        else:
            made: Any = found(**args)
            _finished(made(alert))

    return deliver


def _rendered(notifier: Any, alert: Alert) -> Any:
    """Call `notify` directly: a notifier's own __call__ hides exceptions, and the log must show a lost alert."""
    context: dict[str, Any] = {"alert": alert, "run_id": alert.run_id, "exception": alert.message}
    if hasattr(notifier, "render_template_fields"):
        notifier.render_template_fields(context)
    return notifier.notify(context)


def _finished(result: Any) -> None:
    async def awaited() -> None:
        await result

    if inspect.isawaitable(result):
        asyncio.run(awaited())
