"""A flow's message handler, assignment listener and what it does with refused records (KIP-3), as settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ferry.config.problems import Problems
from ferry.config.properties import Entry
from ferry.errors import ConfigError
from ferry.handling.loading import check_handler, check_listener

HANDLER = "ferry.message.handler"
HANDLER_ARGS = "ferry.message.handler.args"
REROUTE = "ferry.handler.reroute"
LISTENER = "ferry.assignment.listener"
LISTENER_ARGS = "ferry.assignment.listener.args"
ABORT = "ferry.abort.on.send.failure"


@dataclass(frozen=True)
class HandlingSettings:
    """Names are `package.module:Class`; None: there is none. `args` None: made without. See ferry.handling."""

    message_handler: str | None = None
    message_handler_args: str | None = None
    assignment_listener: str | None = None
    assignment_listener_args: str | None = None
    abort_on_send_failure: bool = True


def read_handling(value: Callable[[str], Any], entry: Callable[[str], Entry | None], problems: Problems) -> HandlingSettings:
    """The settings of one flow. `value` gives a property's effective value, `entry` where it stands.

    The named modules are imported here, so that a name that leads nowhere is a problem of the file and not of a run.
    """
    settings = HandlingSettings(value(HANDLER), value(HANDLER_ARGS), value(LISTENER), value(LISTENER_ARGS), value(ABORT))
    for key, name, args, check in (
        (HANDLER, settings.message_handler, settings.message_handler_args, check_handler),
        (LISTENER, settings.assignment_listener, settings.assignment_listener_args, check_listener),
    ):
        found = entry(key)
        if name is not None and found is not None:
            try:
                check(name, args)
            except ConfigError as problem:
                problems.add(str(problem), key=found.key, line=found.line)
        alone = entry(f"{key}.args")
        if name is None and alone is not None:
            problems.warn(f"has no effect without {key}", key=alone.key, line=alone.line)
    reroute = entry(REROUTE)
    if reroute is not None and value(REROUTE):
        what = "is not supported: a message handler can change everything of a record but its topic and partition; remove it"
        problems.add(what, key=reroute.key, line=reroute.line)
    return settings
