"""`ferry sync`: syncs without a copy, or a dry run of them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.copies import AsJson, Config, FlowName, load_flow
from ferry.cli.output import complain, document, notice, show
from ferry.errors import worst_exit_code
from ferry.pipeline.tables import sync_parts
from ferry.syncs.names import SyncName

if TYPE_CHECKING:
    from ferry.ledger.sync_outcome import SyncOutcome

SYNC_VERSION = 1


# An enum cannot extend another enum.
Wanted = StrEnum("Wanted", [*((name.name, name.value) for name in SyncName), ("ALL", "all")])  # type: ignore[misc]


def sync(
    config: Config,
    flow: FlowName,
    what: Annotated[
        Wanted, typer.Argument(metavar="WHAT", help="What to sync; all: every sync that the flow has enabled, in the order of a run.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would change, and why.")] = False,
    as_json: AsJson = False,
) -> None:
    """Sync topics, configs, ACLs, groups and the like now, whatever the intervals say. `all` does only syncs that are enabled."""
    from ferry.pipeline.syncs import Syncs  # noqa: PLC0415 - keeps `ferry --help` quick

    settings = load_flow(config, flow)
    names = list(SyncName) if what.value == "all" else [SyncName(what.value)]
    syncs = Syncs(settings, dry_run=dry_run)
    outcomes = [syncs.carry_out(name, on_request=True, unless_disabled=what.value == "all") for name in names]
    if as_json:
        document({"version": SYNC_VERSION, "flow": flow, "dry_run": dry_run, "syncs": {one.sync: one.document() for one in outcomes}})
    else:
        for outcome in outcomes:
            show(sync_parts(outcome))
            for text in outcome.notices:
                notice(f"{outcome.sync}: {text}")
            for failure in outcome.failed:
                complain(f"{outcome.sync}: {failure}")
    raise typer.Exit(worst_exit_code(outcome.exit_code for outcome in outcomes))


def summary(outcome: SyncOutcome) -> str:
    """One line about a sync of a run."""
    if outcome.left_out:
        return f"{outcome.sync}: left out: {outcome.left_out}"
    counts = [f"{len(outcome.changes)} changed"]
    counts += [f"{len(entries)} {word}" for word, entries in (("left alone", outcome.skipped), ("failed", outcome.failed)) if entries]
    return f"{outcome.sync}: {', '.join(counts)}"
