"""`ferry sandbox up|down|status`: local clusters to try things on."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.output import document, table

app = typer.Typer(help="Two real Kafka clusters on this machine, to try Ferry.", no_args_is_help=True)

DEFAULT_DIRECTORY = Path(".ferry/sandbox")
Directory = Annotated[Path, typer.Option(help="Where the clusters keep their data and logs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]


@app.command("up")
def up(directory: Directory = DEFAULT_DIRECTORY, as_json: AsJson = False) -> None:
    """Start both clusters, if they do not run, and write an mm2.properties for them."""
    from ferry.sandbox import up as start  # noqa: PLC0415 - keeps `ferry --help` quick

    _show(start(directory), as_json=as_json)


@app.command("fill")
def fill(
    directory: Directory = DEFAULT_DIRECTORY,
    records: Annotated[int, typer.Option(min=100, max=1_000_000, help="About so many records for each topic.")] = 2_000,
    as_json: AsJson = False,
) -> None:
    """Write sample records into eight topics of cluster A. The group billing reads a part of them."""
    from ferry.sandbox import fill as write  # noqa: PLC0415 - see up

    filled = write(directory, records)
    if as_json:
        document({"version": 1, **asdict(filled), "records": filled.records})
        return
    table("written to A", ("topic", "records"), [*filled.topics.items(), ("in aborted transactions", filled.aborted)])


@app.command("down")
def down(directory: Directory = DEFAULT_DIRECTORY, as_json: AsJson = False) -> None:
    """Stop both clusters and remove their data."""
    from ferry.sandbox import down as stop  # noqa: PLC0415 - see up

    _show(stop(directory), as_json=as_json)


@app.command("status")
def status(directory: Directory = DEFAULT_DIRECTORY, as_json: AsJson = False) -> None:
    """Show which clusters run, and where."""
    from ferry.sandbox import status as look  # noqa: PLC0415 - see up

    _show(look(directory), as_json=as_json)


def _show(found: object, *, as_json: bool) -> None:
    content = asdict(found)  # type: ignore[call-overload]
    if as_json:
        document({"version": 1, **content})
        return
    rows = [(name, str(value)) for name, value in content.items()]
    table("sandbox", ("what", "value"), rows)
