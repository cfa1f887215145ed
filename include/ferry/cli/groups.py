"""`ferry explain` and `ferry translate`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.copies import AsJson, Config, FlowName, load_flow
from ferry.cli.output import document, line, notice, table
from ferry.errors import ExitCode

if TYPE_CHECKING:
    from ferry.syncs.group_explanation import GroupExplanation, GroupSide
    from ferry.syncs.translated_groups import TranslatedGroups
    from ferry.translation.model import TranslatedPosition

EXPLANATION_VERSION, TRANSLATION_VERSION = 1, 1
_ONLY_GROUP = "Only this consumer group, even if the group filter excludes it; may be repeated. Default: all."
Groups = Annotated[list[str] | None, typer.Option("--group", "-g", help=_ONLY_GROUP)]


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
        document({"version": EXPLANATION_VERSION, **asdict(found)})
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
            entry.source_offset,
            entry.source_lag,
            entry.remote_topic,
            entry.translated,
            entry.target_offset,
            entry.target_lag,
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


def translate(
    config: Config,
    flow: FlowName,
    group: Groups = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Translate offsets of the target's groups to the source.")] = False,
    as_json: AsJson = False,
) -> None:
    """Translate offsets of consumer groups to the other cluster. Writes nothing."""
    from ferry.syncs.translated_groups import translated_groups  # noqa: PLC0415 - keeps `ferry --help` quick

    found = translated_groups(load_flow(config, flow), group, reverse=reverse)
    rows = [_row(position, reverse=reverse) for position in found.positions]
    if as_json:
        content = {"flow": flow, "reverse": reverse, "groups": found.groups, "positions": rows}
        document({"version": TRANSLATION_VERSION, **content, "left_out": [asdict(entry) for entry in found.left_out]})
    else:
        _show_translation(found, rows)
    raise typer.Exit(ExitCode.PARTLY_FAILED if any(entry.error for entry in found.left_out) else ExitCode.DONE)


def _row(position: TranslatedPosition, *, reverse: bool) -> dict[str, Any]:
    """One position as a row: the source's side first, also with --reverse."""
    translation = position.translation
    here, there = (position.topic, position.upstream_offset), (position.remote_topic, translation.image if translation else None)
    (topic, upstream), (remote_topic, downstream) = (there, here) if reverse else (here, there)
    reason = translation.reason.value if translation is not None and translation.reason is not None else ""
    return {
        "group": position.group,
        "topic": topic,
        "partition": position.partition,
        "remote_topic": remote_topic,
        "upstream_offset": upstream,
        "downstream_offset": downstream,
        "exact": translation is not None and translation.exact,
        "reason": "; ".join(filter(None, (reason, position.problem))),
        "metadata": position.metadata,
    }


def _show_translation(found: TranslatedGroups, rows: list[dict[str, Any]]) -> None:
    for entry in found.left_out:
        notice(f"group {entry.group}: left out: {entry.reason}")
    for group in found.groups:
        if all(row["group"] != group for row in rows):
            notice(f"group {group}: it has no offsets")
    columns = ("group", "topic", "partition", "upstream_offset", "downstream_offset", "exact", "reason")
    cells = [[row[column] for column in columns] for row in rows]
    table(f"{found.flow}: offsets" + (" (reverse)" if found.reverse else ""), columns, cells)
