"""`ferry seed`, `ferry export-offsets` and `ferry ack-loss`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.copies import AsJson, Config, FlowName, Topics, load_flow, run_id
from ferry.cli.output import complain, document, line, notice, table
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError

if TYPE_CHECKING:
    from ferry.config import Flow
    from ferry.recovery.positions import GivenPositions
    from ferry.recovery.seeding import SeedOutcome

CHANGE_VERSION = 1

FromFile = Annotated[Path | None, typer.Option("--from-file", help="CSV: topic,partition,position (the next source offset to copy).")]

OffsetsTopic = Annotated[str | None, typer.Option("--offsets-topic", help="Connect's offsets topic; default: mm2-offsets.A.internal.")]
Connector = Annotated[str | None, typer.Option("--connector", help="The connector's name, if the topic has several.")]


def seed(
    config: Config,
    flow: FlowName,
    from_file: FromFile = None,
    from_mm2: Annotated[bool, typer.Option("--from-mm2", help="Take MirrorMaker 2's offsets; it must have stopped.")] = False,
    offsets_topic: OffsetsTopic = None,
    connector: Connector = None,
    from_group: Annotated[
        str | None, typer.Option("--from-group", help="Take the offsets of a group on the source, which copied until now.")
    ] = None,
    foreign: Annotated[bool, typer.Option("--foreign", help="Declare that the records in remote topics are another replicator's.")] = False,
    topic: Topics = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set the positions of partitions, or declare records that Ferry did not copy. A run that is active is superseded."""
    from ferry.recovery.seeding import declare_foreign  # noqa: PLC0415 - keeps `ferry --help` quick
    from ferry.recovery.seeding import seed as write_seeds  # noqa: PLC0415 - see above

    if (from_file is not None) + from_mm2 + (from_group is not None) + foreign != 1:
        raise ArgumentError("give exactly one of --from-file, --from-mm2, --from-group, --foreign")
    if (offsets_topic or connector) and not from_mm2:
        raise ArgumentError("--offsets-topic and --connector go with --from-mm2")
    loaded, request = load_flow(config, flow), RunRequest(flow, run_id("seed"), topics=tuple(topic or ()))
    if foreign:
        outcome = declare_foreign(loaded, request, dry_run=dry_run)
    else:
        given = _given(loaded, from_file, from_group, offsets_topic, connector)
        outcome = write_seeds(loaded, request, given.of_topics(topic) if topic else given, dry_run=dry_run)
    if as_json:
        document(outcome.document())
    else:
        _show_seeds(outcome)
    raise typer.Exit(outcome.exit_code)


def _given(flow: Flow, file: Path | None, group: str | None, offsets_topic: str | None, connector: str | None) -> GivenPositions:
    from ferry.recovery.mm2_positions import read_mm2_positions  # noqa: PLC0415 - see seed
    from ferry.recovery.positions import read_group_positions, read_seed_file  # noqa: PLC0415 - see seed

    if file is not None:
        return read_seed_file(file)
    return read_mm2_positions(flow, offsets_topic, connector) if group is None else read_group_positions(flow, group)


def _show_seeds(outcome: SeedOutcome) -> None:
    rows = [
        (
            entry.topic,
            entry.partition,
            entry.remote_topic,
            entry.before,
            entry.position,
            entry.reason,
            ", ".join(f"below {downstream}: [{start}, {end})" for start, end, downstream in entry.foreign),
        )
        for entry in outcome.seeds
    ]
    title = f"{outcome.flow}: {'would be ' if outcome.dry_run else ''}written"
    if rows:
        table(title, ("topic", "partition", "remote topic", "before", "position", "why", "declared foreign"), rows)
    for skipped in outcome.left_out:
        notice(f"left out: {skipped.what}: {skipped.reason}")
    for text in outcome.notices:
        notice(text)
    for failure in outcome.failed:
        complain(str(failure))
    if not rows and not outcome.failed:
        line("nothing to write")


def export_offsets(
    config: Config,
    flow: FlowName,
    offsets_topic: OffsetsTopic = None,
    connector: Connector = None,
    topic: Topics = None,
    write: Annotated[bool, typer.Option("--write", help="Write the records to that topic too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print where MirrorMaker 2 would continue after Ferry, as records of its offsets topic."""
    from ferry.recovery.exporting import export_offsets as export  # noqa: PLC0415 - see seed

    request = RunRequest(flow, run_id("export"), topics=tuple(topic or ()))
    exported = export(load_flow(config, flow), request, offsets_topic, connector, write=write)
    if as_json:
        document(exported.document())
        return
    for key, value in exported.records:
        line(f"{key.decode()}\t{value.decode()}")
    for skipped in exported.left_out:
        notice(f"left out: {skipped.what}: {skipped.reason}")
    notice(f"{len(exported.offsets)} records {'written to' if exported.written else 'for'} {exported.topic}")


def acknowledge_losses(config: Config, flow: FlowName, as_json: AsJson = False) -> None:
    """Acknowledge all losses of the flow. They stay in the ledger, but `ferry status` no longer fails because of them."""
    from ferry.ledger.losses import acknowledge_losses as acknowledge  # noqa: PLC0415 - see seed

    losses = acknowledge(load_flow(config, flow))
    if as_json:
        ranges = [[loss.topic, loss.partition, loss.upstream_start, loss.upstream_end] for loss in losses]
        document({"version": CHANGE_VERSION, "flow": flow, "acknowledged": ranges})
        return
    for loss in losses:
        line(f"{loss.topic}-{loss.partition} [{loss.upstream_start}, {loss.upstream_end}): {loss.reason}")
    line(f"{len(losses)} losses acknowledged")
