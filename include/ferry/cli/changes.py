"""`ferry seed` and `ferry ack-loss`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.copies import AsJson, Config, FlowName, load_flow, run_id
from ferry.cli.output import document, line, notice
from ferry.copying.request import RunRequest

CHANGE_VERSION = 1


def seed(
    config: Config,
    flow: FlowName,
    from_file: Annotated[Path, typer.Option("--from-file", help="CSV: topic,partition,position (the next source offset to copy).")],
    as_json: AsJson = False,
) -> None:
    """Say where partitions go on: settles PositionDisagrees. A run that is under way is superseded."""
    from ferry.recovery.seeding import seed_from_file  # noqa: PLC0415 - keeps `ferry --help` quick

    report = seed_from_file(load_flow(config, flow), RunRequest(flow, run_id("seed")), from_file)
    if as_json:
        document(report.document())
    else:
        for failure in report.failed:
            notice(str(failure))
        line("positions written" if not report.failed else f"{len(report.failed)} partitions failed")
    raise typer.Exit(report.exit_code)


def acknowledge_losses(config: Config, flow: FlowName, as_json: AsJson = False) -> None:
    """Mark all losses of the flow as seen: they stay in the ledger, and `ferry status` no longer fails for them."""
    from ferry.recovery.losses import acknowledge_losses as acknowledge  # noqa: PLC0415 - see seed

    losses = acknowledge(load_flow(config, flow))
    if as_json:
        ranges = [[loss.topic, loss.partition, loss.upstream_start, loss.upstream_end] for loss in losses]
        document({"version": CHANGE_VERSION, "flow": flow, "acknowledged": ranges})
        return
    for loss in losses:
        line(f"{loss.topic}-{loss.partition} [{loss.upstream_start}, {loss.upstream_end}): {loss.reason}")
    line(f"{len(losses)} losses acknowledged")
