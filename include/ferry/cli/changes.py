"""`ferry seed`, `ferry export-offsets` and `ferry ack-loss`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.options import AsJson, Config, FlowName, Topics, load_flow, run_id
from ferry.cli.output import Aside, Part, answer, complaint
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError, count_of, offsets_of
from ferry.pipeline.tables import Table

if TYPE_CHECKING:
    from ferry.migration.seeding import SeedOutcome

OffsetsTopic = Annotated[str | None, typer.Option(help="Connect's offsets topic; default: mm2-offsets.A.internal.")]
Connector = Annotated[str | None, typer.Option(help="The connector's name, if the topic has several.")]


def seed(
    config: Config,
    flow: FlowName,
    from_file: Annotated[Path | None, typer.Option(help="CSV: topic,partition,position (the next source offset to copy).")] = None,
    from_mm2: Annotated[bool, typer.Option("--from-mm2", help="Take MirrorMaker 2's offsets; it must have stopped.")] = False,
    offsets_topic: OffsetsTopic = None,
    connector: Connector = None,
    from_group: Annotated[str | None, typer.Option(help="Take the committed offsets of this consumer group on the source.")] = None,
    foreign: Annotated[bool, typer.Option("--foreign", help="Set no positions: declare that another replicator wrote records.")] = False,
    topic: Topics = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set the positions of partitions, or declare records that Ferry did not copy. Supersedes an active run."""
    from ferry.ledger.open_flow import contacted_flow
    from ferry.migration.mm2_positions import read_mm2_positions
    from ferry.migration.positions import read_group_positions, read_seed_file
    from ferry.migration.seeding import declare_foreign
    from ferry.migration.seeding import seed as write_seeds

    if (from_file is not None) + from_mm2 + (from_group is not None) + foreign != 1:
        raise ArgumentError("give exactly one of --from-file, --from-mm2, --from-group, --foreign")
    if (offsets_topic or connector) and not from_mm2:
        raise ArgumentError("--offsets-topic and --connector go with --from-mm2")
    loaded, request = load_flow(config, flow), RunRequest(flow, run_id("seed"), topics=tuple(topic or ()))
    with contacted_flow(loaded) as opened:
        if foreign:
            outcome = declare_foreign(opened, request, dry_run=dry_run)
        else:
            if from_file is not None:
                given = read_seed_file(from_file)
            elif from_group is not None:
                given = read_group_positions(opened, from_group)
            else:
                given = read_mm2_positions(opened, offsets_topic, connector)
            outcome = write_seeds(opened, request, given.of_topics(topic) if topic else given, dry_run=dry_run)
    answer(outcome.document(), _seeds(outcome), as_json=as_json)
    raise typer.Exit(outcome.exit_code)


def _seeds(outcome: SeedOutcome) -> Iterator[Part]:
    if outcome.seeds:
        title = f"{outcome.flow}: {'would be ' if outcome.dry_run else ''}written"
        what = "topic", "partition", "remote topic", "before", "position"
        yield Table.of(title, outcome.seeds, *what, ("why", "reason"), ("declared foreign", "declared"))
    yield from (Aside(f"left out: {skipped.what}: {skipped.reason}") for skipped in outcome.left_out)
    yield from map(Aside, outcome.notices)
    yield from map(complaint, outcome.failed)
    if not outcome.seeds and not outcome.failed:
        yield "nothing to write"
    elif outcome.seeds and not outcome.dry_run:
        yield Aside("next: ferry plan shows what the next run copies from there; ferry run copies it")


def export_offsets(
    config: Config,
    flow: FlowName,
    offsets_topic: OffsetsTopic = None,
    connector: Connector = None,
    topic: Topics = None,
    write: Annotated[bool, typer.Option("--write", help="Write the records to that topic too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print records for MirrorMaker 2's offsets topic. With these records MM2 continues where Ferry stopped."""
    from ferry.ledger.open_flow import contacted_flow
    from ferry.migration.exporting import export_offsets as export

    request = RunRequest(flow, run_id("export"), topics=tuple(topic or ()))
    with contacted_flow(load_flow(config, flow)) as opened:
        exported = export(opened, request, offsets_topic, connector, write=write)
    parts = [
        *(f"{key.decode()}\t{value.decode()}" for key, value in exported.records),
        *(Aside(f"left out: {skipped.what}: {skipped.reason}") for skipped in exported.left_out),
        Aside(f"{count_of(len(exported.offsets), 'record')} {'written to' if exported.written else 'for'} {exported.topic}"),
    ]
    answer(exported.document(), parts, as_json=as_json)


def acknowledge_losses(config: Config, flow: FlowName, as_json: AsJson = False) -> None:
    """Acknowledge all losses of the flow. They stay in the ledger, but `ferry status` no longer fails because of them."""
    from ferry.ledger.losses import acknowledge_losses as acknowledge
    from ferry.ledger.open_flow import open_flow

    with open_flow(load_flow(config, flow)) as opened:
        losses = acknowledge(opened)
    ranges = [[loss.topic, loss.partition, loss.upstream_start, loss.upstream_end] for loss in losses]
    parts = [f"{loss.topic}-{loss.partition} {offsets_of(loss.upstream_start, loss.upstream_end)}: {loss.reason}" for loss in losses]
    parts.append(f"{count_of(len(losses), 'loss', 'losses')} acknowledged")
    then = [Aside("next: ferry status, which no longer fails because of them; ferry verify still lists them")] if losses else []
    answer({"flow": flow, "acknowledged": ranges}, [*parts, *then], as_json=as_json)
