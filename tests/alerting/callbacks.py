"""Callbacks as users write them, for the tests."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ferry.alerting.alert import Alert

TOLD: list[tuple[str, Any]] = []


def tell(alert: Alert, channel: str = "") -> None:
    TOLD.append((channel, alert.document()))


def particular(alert: Alert) -> None:
    if not alert.url:
        raise ValueError("it needs a link")
    tell(alert)


async def tell_later(alert: Alert) -> None:
    await asyncio.sleep(0)
    TOLD.append(("later", alert.document()))


class Notifier:
    """As Airflow's: made with its arguments, its templates rendered, then notified."""

    def __init__(self, *, text: str) -> None:
        self.text = text

    def render_template_fields(self, context: dict[str, Any]) -> None:
        self.text = self.text.replace("{{ alert.message }}", context["alert"].message)

    def notify(self, context: dict[str, Any]) -> None:
        TOLD.append((self.text, context["run_id"]))


class Called:
    """Made once, called with the alert."""

    def __init__(self, room: str) -> None:
        self.room = room

    def __call__(self, alert: Alert) -> None:
        TOLD.append((self.room, alert.key))


class Mute:
    """Nothing to call."""


def raising(alert: Alert) -> None:
    raise RuntimeError("https://hooks.example/secret-token")


def leaving(alert: Alert) -> None:
    raise SystemExit(3)


def hanging(alert: Alert) -> None:
    time.sleep(3600)


NUMBER = 7
