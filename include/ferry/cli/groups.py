"""Commands about consumer groups, and what a cluster knows about replication into it: `ferry explain`, `translate` and `client`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.completing import cluster_names
from ferry.cli.options import AsJson, Commands, Config, FlowName, load, load_flow
from ferry.cli.output import Aside, Part, answer
from ferry.errors import ArgumentError, ExitCode
from ferry.pipeline.tables import Table

if TYPE_CHECKING:
    from ferry.client import MirrorClient
    from ferry.syncs.group_explanation import GroupSide
    from ferry.translation.translated import TranslatedPosition

# A person waits for the answer; the topic is small.
DEFAULT_SECONDS = 30.0
_ONLY_GROUP = "Only this consumer group, even if the group filter excludes it; may be repeated. Default: all."
Groups = Annotated[list[str] | None, typer.Option("--group", "-g", help=_ONLY_GROUP)]


def explain(
    config: Config,
    flow: FlowName,
    group: Annotated[str, typer.Option("--group", "-g", help="The consumer group.")],
    as_json: AsJson = False,
) -> None:
    """Explain why a group is synced or not: its state on both sides, its translated offsets, and what a sync would do now."""
    from ferry.ledger.open_flow import contacted_flow
    from ferry.syncs.group_explanation import explain_group

    with contacted_flow(load_flow(config, flow)) as opened:
        found = explain_group(opened, group)
    parts: list[Part] = [f"{side.cluster}: {_state(side)}" for side in (found.source, found.target)]
    parts += [f"not synced: {obstacle}" for obstacle in found.obstacles] or ["synced by runs, partition by partition:"]
    if found.partitions:
        there = "remote topic", "translated", ("there now", "target_offset"), ("lag there", "target_lag")
        here = "topic", "partition", ("offset", "source_offset"), ("lag", "source_lag")
        parts.append(Table.of(f"{found.flow}: group {found.group}", found.partitions, *here, *there, ("sync", "decision"), "reason"))
    answer(asdict(found), parts, as_json=as_json)


def _state(side: GroupSide) -> str:
    if not side.type:
        return "no such group"
    none = ", no members" if side.state == "Empty" else ""  # the members of share groups are not known
    return f"{side.state}, {side.type}" + (f", members: {', '.join(side.members)}" if side.members else none)


def translate(
    config: Config,
    flow: FlowName,
    group: Groups = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Translate offsets of the target's groups to the source.")] = False,
    as_json: AsJson = False,
) -> None:
    """Translate offsets of consumer groups to the other cluster. Writes nothing."""
    from ferry.ledger.open_flow import contacted_flow
    from ferry.syncs.translated_groups import translated_groups

    with contacted_flow(load_flow(config, flow)) as opened:
        found = translated_groups(opened, group, reverse=reverse)
    rows = [_row(position, reverse=reverse) for position in found.positions]
    columns = ("group", "topic", "partition", "upstream_offset", "downstream_offset", "exact", "reason")
    parts: list[Part] = [
        *(Aside(f"group {entry.group}: left out: {entry.reason}") for entry in found.left_out),
        *(Aside(f"group {name}: it has no offsets") for name in found.groups if all(row["group"] != name for row in rows)),
        Table(f"{flow}: offsets" + (" (reverse)" if reverse else ""), columns, [tuple(map(row.get, columns)) for row in rows]),
    ]
    content = {"flow": flow, "reverse": reverse, "groups": found.groups, "positions": rows}
    answer({**content, "left_out": [asdict(entry) for entry in found.left_out]}, parts, as_json=as_json)
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


class ConfigFirst(Commands):
    """Lets CONFIG stand before the options of the group, as in all other commands. A plain group takes no options after an argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and args and args[-1] in {"--cluster", "-c"}:  # the shell asks how to complete the option's value
            return super().parse_args(ctx, args)
        asked = next((place for place, word in enumerate(args) if word in self.commands), len(args))
        if args and not args[0].startswith("-") and asked:
            args = [*args[1:asked], args[0], *args[asked:]]
        return super().parse_args(ctx, args)


@dataclass(frozen=True)
class Asked:
    config: Path
    cluster: str

    def connect(self, upstream: str | None = None) -> MirrorClient:
        from ferry.client.remote_cluster import connect

        return connect(load(self.config), self.cluster, upstream)

    def answer(self, parts: Iterable[Part], *, as_json: bool, **content: object) -> None:
        answer({"cluster": self.cluster, **content}, parts, as_json=as_json)

    def names(self, key: str, ask: Callable[[MirrorClient], Iterable[str]], *, as_json: bool, **asked: str | None) -> None:
        """Print the names that a client answers, each on a line."""
        with self.connect(asked.get("source")) as client:
            found = sorted(ask(client))
        self.answer(found, as_json=as_json, **asked, **{key: found})


client_app = typer.Typer(cls=ConfigFirst, no_args_is_help=True)
Source = Annotated[str, typer.Option("--source", "-s", help="Alias of the cluster upstream.", autocompletion=cluster_names)]


@client_app.callback()
def ask(
    context: typer.Context,
    config: Config,
    cluster: Annotated[
        str, typer.Option("--cluster", "-c", help="Alias of the cluster to ask, normally a target.", autocompletion=cluster_names)
    ],
) -> None:
    """Answer the questions of MM2's RemoteClusterUtils and MirrorClient, from the topics of one cluster."""
    context.obj = Asked(config, cluster)


@client_app.command("replication-hops")
def replication_hops(context: typer.Context, source: Source, as_json: AsJson = False) -> None:
    """Print the number of flows between an upstream cluster and this one; -1 if no heartbeat arrives from there."""
    asked: Asked = context.obj
    with asked.connect(source) as client:
        hops = client.replication_hops(source)
    asked.answer([str(hops)], as_json=as_json, source=source, hops=hops)


@client_app.command("heartbeat-topics")
def heartbeat_topics(context: typer.Context, as_json: AsJson = False) -> None:
    """List topics with heartbeats: the cluster's own, and the copies of others."""
    context.obj.names("topics", lambda client: client.heartbeat_topics(), as_json=as_json)


@client_app.command("checkpoint-topics")
def checkpoint_topics(context: typer.Context, as_json: AsJson = False) -> None:
    """List topics with checkpoints."""
    context.obj.names("topics", lambda client: client.checkpoint_topics(), as_json=as_json)


@client_app.command("upstream-clusters")
def upstream_clusters(context: typer.Context, as_json: AsJson = False) -> None:
    """List clusters whose heartbeats arrive here, over any number of hops."""
    context.obj.names("clusters", lambda client: client.upstream_clusters(), as_json=as_json)


@client_app.command("remote-topics")
def remote_topics(
    context: typer.Context,
    source: Annotated[str | None, typer.Option("--source", "-s", help="Only copies from this cluster, one hop away.")] = None,
    as_json: AsJson = False,
) -> None:
    """List topics that are copies of other clusters' topics."""
    context.obj.names("topics", lambda client: client.remote_topics(source), as_json=as_json, source=source)


@client_app.command("translate-offsets")
def translate_offsets(
    context: typer.Context,
    source: Source,
    group: Annotated[str | None, typer.Option("--group", "-g", help="A consumer group of the cluster upstream.")] = None,
    group_pattern: Annotated[str | None, typer.Option(help="A Java regular expression for whole group names.")] = None,
    timeout: Annotated[
        float, typer.Option(min=0, help="Read for at most this number of seconds, and use what was read by then.")
    ] = DEFAULT_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Print the offsets at which groups of another cluster continue on this one, from the newest checkpoints."""
    if (group is None) == (group_pattern is None):
        raise ArgumentError("translate-offsets needs one of --group NAME and --group-pattern REGEX")
    asked: Asked = context.obj
    with asked.connect(source) as client:
        if group is not None:
            found = {group: client.remote_consumer_offsets(group, source, timeout)}
        else:
            found = client.remote_consumer_offsets_matching(group_pattern or "", source, timeout)
    columns = ("group", "topic", "partition", "offset", "metadata")
    rows = [(name, *place, *where) for name, offsets in sorted(found.items()) for place, where in sorted(offsets.items())]
    told = Table(f"{source} at {asked.cluster}: offsets", columns, rows)
    asked.answer([told], as_json=as_json, source=source, offsets=[dict(zip(columns, row, strict=True)) for row in rows])
