"""`ferry acls`: the rights that a flow needs, as commands for an administrator."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.copies import AsJson, Config, FlowName, load_flow
from ferry.cli.output import document, line
from ferry.errors import ArgumentError

if TYPE_CHECKING:
    from ferry.config import Cluster

RIGHTS_VERSION = 1

SourcePrincipal = Annotated[
    str | None, typer.Option("--source-principal", help="The principal that reads the source; default: by the config's login.")
]
TargetPrincipal = Annotated[
    str | None, typer.Option("--target-principal", help="The principal that writes to the target; default: by the config's login.")
]
CommandConfig = Annotated[
    str | None, typer.Option("--command-config", help="File with the administrator's client properties, for kafka-acls.")
]

Recovery = Annotated[bool, typer.Option("--recovery", help="Also the rights that only failover, failback and cutover need.")]


def acls(
    config: Config,
    flow: FlowName,
    source_principal: SourcePrincipal = None,
    target_principal: TargetPrincipal = None,
    command_config: CommandConfig = None,
    recovery: Recovery = False,
    as_json: AsJson = False,
) -> None:
    """Print the rights that the flow needs on both clusters, as kafka-acls commands. Asks no cluster."""
    from ferry.permissions.commands import commands, in_one_line  # noqa: PLC0415 - keeps `ferry --help` quick
    from ferry.permissions.required import required_rights  # noqa: PLC0415 - see above

    settings = load_flow(config, flow)
    needed = required_rights(settings, recovery=recovery)
    sides: dict[str, dict[str, Any]] = {}
    for name, cluster, given, rights in (
        ("source", settings.source, source_principal, needed.source),
        ("target", settings.target, target_principal, needed.target),
    ):
        principal = _principal(cluster, given, f"--{name}-principal")
        told = commands(cluster.bootstrap, principal, rights, command_config)
        sides[name] = {
            "cluster": cluster.alias,
            "bootstrap": cluster.bootstrap,
            "principal": principal,
            "rights": [{**asdict(right.resource), "operation": right.operation, "needed_for": right.needed_for} for right in rights],
            "commands": [{"comment": comment, "command": command} for comment, command in told],
        }
    if as_json:
        document({"version": RIGHTS_VERSION, "flow": flow, **sides, "notes": list(needed.notes)})
        return
    for name, side in sides.items():
        line(in_one_line(f"# {name} {side['cluster']}, for {side['principal']}"))
        for entry in side["commands"]:
            line(entry["comment"])
            line(entry["command"])
    for text in needed.notes:
        line(in_one_line(f"# note: {text}"))


def _principal(cluster: Cluster, given: str | None, option: str) -> str:
    from ferry.permissions.commands import checked_principal  # noqa: PLC0415 - see acls

    principal = cluster.principal if given is None else given
    if principal is None:
        raise ArgumentError(f"the config does not say by which principal {cluster.alias} knows Ferry: give {option}, like User:ferry")
    return checked_principal(principal, option)
