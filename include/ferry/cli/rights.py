"""`ferry acls`: the rights that a flow needs, as commands for an administrator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.copies import AsJson, Config, FlowName, load_flow
from ferry.cli.output import document, line
from ferry.errors import ArgumentError

if TYPE_CHECKING:
    from ferry.config import Cluster
    from ferry.permissions.model import Right

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
    from ferry.permissions.commands import in_one_line  # noqa: PLC0415 - keeps `ferry --help` quick
    from ferry.permissions.required import required_rights  # noqa: PLC0415 - see above

    settings = load_flow(config, flow)
    needed = required_rights(settings, recovery=recovery)
    sides = {
        "source": ClusterRights(settings.source, _principal(settings.source, source_principal, "--source-principal"), needed.source),
        "target": ClusterRights(settings.target, _principal(settings.target, target_principal, "--target-principal"), needed.target),
    }
    if as_json:
        told = {name: side.document(command_config) for name, side in sides.items()}
        document({"version": RIGHTS_VERSION, "flow": flow, **told, "notes": list(needed.notes)})
        return
    for name, side in sides.items():
        _show(name, side, command_config)
    for text in needed.notes:
        line(in_one_line(f"# note: {text}"))


class ClusterRights:
    """The rights that a principal needs on one cluster."""

    def __init__(self, cluster: Cluster, principal: str, rights: Iterable[Right]) -> None:
        from ferry.permissions.commands import commands  # noqa: PLC0415 - see acls

        self.cluster, self.principal, self.rights = cluster, principal, tuple(rights)
        self._commands = commands

    def commands(self, command_config: str | None) -> list[tuple[str, str]]:
        return list(self._commands(self.cluster.bootstrap, self.principal, self.rights, command_config))

    def document(self, command_config: str | None) -> dict[str, Any]:
        rights = [{**asdict(right.resource), "operation": right.operation, "needed_for": right.needed_for} for right in self.rights]
        told = [{"comment": comment, "command": command} for comment, command in self.commands(command_config)]
        where = {"cluster": self.cluster.alias, "bootstrap": self.cluster.bootstrap, "principal": self.principal}
        return {**where, "rights": rights, "commands": told}


def _principal(cluster: Cluster, given: str | None, option: str) -> str:
    from ferry.permissions.commands import checked_principal  # noqa: PLC0415 - see acls

    if given is not None:
        return checked_principal(given, option)
    if cluster.principal is None:
        raise ArgumentError(f"the config does not say by which principal {cluster.alias} knows Ferry: give {option}, like User:ferry")
    return checked_principal(cluster.principal, option)


def _show(name: str, side: ClusterRights, command_config: str | None) -> None:
    from ferry.permissions.commands import in_one_line  # noqa: PLC0415 - see acls

    line(in_one_line(f"# {name} {side.cluster.alias}, for {side.principal}"))
    for comment, command in side.commands(command_config):
        line(comment)
        line(command)
