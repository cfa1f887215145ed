"""`ferry explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.copies import AsJson, Config, FlowName, load_flow
from ferry.cli.output import document, line, table

if TYPE_CHECKING:
    from ferry.syncs.group_explanation import GroupExplanation, GroupSide

EXPLANATION_VERSION = 1


def explain(
    config: Config,
    flow: FlowName,
    group: Annotated[str, typer.Option("--group", "-g", help="The consumer group.")],
    as_json: AsJson = False,
) -> None:
    """Explain why a group is synced or not: its state on both sides, its translated offsets, and what is decided for each partition."""
    from ferry.syncs.group_explanation import explain_group  # noqa: PLC0415 - keeps `ferry --help` quick

    found = explain_group(load_flow(config, flow), group)
    if as_json:
        document({"version": EXPLANATION_VERSION, **found.document()})
        return
    _show(found)


def _show(found: GroupExplanation) -> None:
    for side in (found.source, found.target):
        line(f"{side.cluster}: {_state(side)}")
    for obstacle in found.obstacles:
        line(f"not synced: {obstacle}")
    if not found.obstacles:
        line("synced by runs, partition by partition:")
    rows = [
        (
            entry.topic,
            entry.partition,
            _shown(entry.source_offset),
            _shown(entry.source_lag),
            entry.remote_topic,
            _shown(entry.translated),
            _shown(entry.target_offset),
            _shown(entry.target_lag),
            entry.decision,
            entry.reason,
        )
        for entry in found.partitions
    ]
    if rows:
        columns = ("topic", "partition", "offset", "lag", "remote topic", "translated", "there now", "lag there", "sync", "reason")
        table(f"{found.flow}: group {found.group}", columns, rows)


def _state(side: GroupSide) -> str:
    if not side.type:
        return "no such group"
    return f"{side.state}, {side.type}" + (f", members: {', '.join(side.members)}" if side.members else ", no members")


def _shown(number: int | None) -> int | str:
    return "" if number is None else number
