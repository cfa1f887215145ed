"""`ferry client`: MM2's RemoteClusterUtils for scripts and people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ferry.cli.completing import cluster_names
from ferry.cli.copies import AsJson, Config, load
from ferry.cli.output import document, line, table
from ferry.errors import ArgumentError

if TYPE_CHECKING:
    from ferry.client import MirrorClient

CLIENT_VERSION = 1
# A person waits for the answer; the topic is small.
DEFAULT_SECONDS = 30.0


class ConfigFirst(TyperGroup):
    """Lets CONFIG stand before the options of the group, as in all other commands. A plain group takes no options after an argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move a leading CONFIG behind the options of the group."""
        if ctx.resilient_parsing and args and args[-1] in {"--cluster", "-c"}:  # the shell asks how to complete the option's value
            return super().parse_args(ctx, args)
        asked = next((place for place, word in enumerate(args) if word in self.commands), len(args))
        if args and not args[0].startswith("-") and asked:
            args = [*args[1:asked], args[0], *args[asked:]]
        return super().parse_args(ctx, args)


@dataclass(frozen=True)
class Asked:
    """The cluster of which the user asks, and the config file."""

    config: Path
    cluster: str

    def connect(self, upstream: str | None = None) -> MirrorClient:
        from ferry.client.remote_cluster import connect  # noqa: PLC0415 - keeps `ferry --help` quick

        return connect(load(self.config), self.cluster, upstream)

    def document(self, **answer: object) -> None:
        document({"version": CLIENT_VERSION, "cluster": self.cluster, **answer})

    def names(self, key: str, ask: Callable[[MirrorClient], Iterable[str]], *, as_json: bool, **asked: str | None) -> None:
        """Print the names that a client answers, each on a line."""
        with self.connect(asked.get("source")) as client:
            found = sorted(ask(client))
        if as_json:
            self.document(**asked, **{key: found})
            return
        for name in found:
            line(name)


app = typer.Typer(
    help="What a cluster knows about replication into it, like MM2's RemoteClusterUtils.", cls=ConfigFirst, no_args_is_help=True
)
Source = Annotated[str, typer.Option("--source", "-s", help="Alias of the cluster upstream.", autocompletion=cluster_names)]


@app.callback()
def ask(
    context: typer.Context,
    config: Config,
    cluster: Annotated[
        str, typer.Option("--cluster", "-c", help="Alias of the cluster to ask, normally a target.", autocompletion=cluster_names)
    ],
) -> None:
    """What a cluster knows about replication into it, like MM2's RemoteClusterUtils."""
    context.obj = Asked(config, cluster)


@app.command("replication-hops")
def replication_hops(context: typer.Context, source: Source, as_json: AsJson = False) -> None:
    """The number of flows between an upstream cluster and this one; -1 if no heartbeats of it arrive."""
    asked: Asked = context.obj
    with asked.connect(source) as client:
        hops = client.replication_hops(source)
    if as_json:
        asked.document(source=source, hops=hops)
    else:
        line(str(hops))


@app.command("heartbeat-topics")
def heartbeat_topics(context: typer.Context, as_json: AsJson = False) -> None:
    """Topics with heartbeats: the cluster's own, and copies of those of other clusters."""
    context.obj.names("topics", lambda client: client.heartbeat_topics(), as_json=as_json)


@app.command("checkpoint-topics")
def checkpoint_topics(context: typer.Context, as_json: AsJson = False) -> None:
    """Topics with checkpoints."""
    context.obj.names("topics", lambda client: client.checkpoint_topics(), as_json=as_json)


@app.command("upstream-clusters")
def upstream_clusters(context: typer.Context, as_json: AsJson = False) -> None:
    """Clusters whose heartbeats arrive here, over any number of hops."""
    context.obj.names("clusters", lambda client: client.upstream_clusters(), as_json=as_json)


@app.command("remote-topics")
def remote_topics(
    context: typer.Context,
    source: Annotated[str | None, typer.Option("--source", "-s", help="Only copies from this cluster, one hop away.")] = None,
    as_json: AsJson = False,
) -> None:
    """Topics that are copies of other clusters' topics."""
    context.obj.names("topics", lambda client: client.remote_topics(source), as_json=as_json, source=source)


@app.command("translate-offsets")
def translate_offsets(
    context: typer.Context,
    source: Source,
    group: Annotated[str | None, typer.Option("--group", "-g", help="A consumer group of the cluster upstream.")] = None,
    group_pattern: Annotated[str | None, typer.Option("--group-pattern", help="A Java regular expression for whole group names.")] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, help="Read for at most so many seconds, even if that is not all.")
    ] = DEFAULT_SECONDS,
    as_json: AsJson = False,
) -> None:
    """The offsets at which groups continue on this cluster, by the newest checkpoints."""
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
    if as_json:
        asked.document(source=source, offsets=[dict(zip(columns, row, strict=True)) for row in rows])
    else:
        table(f"{source} at {asked.cluster}: offsets", columns, rows)
