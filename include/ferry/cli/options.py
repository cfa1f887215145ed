"""Options that several commands have, and their values: the config and its flows, times, run ids."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ferry.cli.completing import flow_names, topic_names
from ferry.cli.output import notice
from ferry.errors import ArgumentError
from ferry.wire.strict_json import parse_time

if TYPE_CHECKING:
    from ferry.config import FerryConfig, Flow

# Copies in this process: for small jobs, for which the start of Spark would take longer than the copy.
INLINE = "inline"
UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}

Config = Annotated[Path, typer.Argument(metavar="CONFIG", help="An mm2.properties file.")]
FlowName = Annotated[str, typer.Option("--flow", "-f", help="The flow, as in the config: 'A->B'.", autocompletion=flow_names)]
AnyFlow = Annotated[str | None, typer.Option("--flow", "-f", help="Only this flow; default: all.", autocompletion=flow_names)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
OneTopic = Annotated[str | None, typer.Option("--topic", "-t", help="Only this source topic.", autocompletion=topic_names)]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", "-t", help="Only this source topic; may be repeated.", autocompletion=topic_names)
]
Master = Annotated[str | None, typer.Option(help="Spark master: local[N], spark://host:port, or 'inline' for this process.")]
Follow = Annotated[
    str | None,
    typer.Option(help="Go on with what arrives for so long: 30m, 2h, 90s; 0: end at the ends of now. Default: ferry.follow.seconds."),
]
ReportFile = Annotated[Path | None, typer.Option(help="Also write the run's JSON document to this file.")]


class Commands(TyperGroup):
    """A group whose help shows no type beside a flag: a flag takes no value."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        _hide_types(command.get_params(ctx) if command is not None else ())
        return command

    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_types(super().get_params(ctx))


def _hide_types(options: Iterable[Any]) -> list[Any]:
    found = list(options)
    for option in found:
        if getattr(option, "is_bool_flag", False):
            option.metavar = ""
    return found


def load(config: Path) -> FerryConfig:
    """The config of a file; its warnings go to stderr. ConfigError."""
    from ferry.config import load_config

    loaded = load_config(config)
    for warning in loaded.warnings:
        notice(f"warning: {warning}")
    return loaded


def load_flow(config: Path, name: str) -> Flow:
    """A flow of a config file. ConfigError, ArgumentError."""
    return load(config).flow(name)


def moment(option: str, text: str | None) -> datetime | None:
    """The time that an option gives, if it is given. ArgumentError if it is no time."""
    try:
        return None if text is None else parse_time(text)
    except ValueError as problem:
        raise ArgumentError(f"{option} {text!r} is not an ISO 8601 time such as 2026-01-31T06:00:00Z") from problem


def follow_until(flow: Flow, text: str | None) -> datetime | None:
    """Until when a run that begins now follows; None if it does not. ArgumentError if `text` is no length of time, or too long."""
    from ferry.config.registry.ferry import MOST_FOLLOW_SECONDS

    seconds = flow.follow_seconds
    if text is not None:
        found = re.fullmatch(r"(\d{1,9})([smh]?)", text)
        if found is None:
            raise ArgumentError(f"--follow {text!r} is not a length of time such as 30m, 2h or 90s")
        seconds = int(found[1]) * UNIT_SECONDS[found[2]]
        if seconds > MOST_FOLLOW_SECONDS:
            raise ArgumentError(f"--follow {text!r} is too long: a run follows for at most {MOST_FOLLOW_SECONDS // 3600}h")
    return datetime.now(UTC) + timedelta(seconds=seconds) if seconds else None


def run_id(kind: str) -> str:
    """A new run id, in the form of Airflow's."""
    return f"{kind}__{datetime.now(UTC).isoformat(timespec='seconds')}__{secrets.token_hex(4)}"
