"""`ferry import`: the files of other tools become one mm2.properties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.options import AsJson
from ferry.cli.output import Aside, Part, answer
from ferry.cli.set_up import NEW_FILE
from ferry.errors import ArgumentError
from ferry.pipeline.tables import Table

if TYPE_CHECKING:
    from ferry.imports.importing import Imported

_MOUNTED = "/etc/ferry/secrets"
FILES_HELP = "A connector's JSON or properties, a Strimzi resource, a MirrorMaker 1 command line in a script, or an mm2.properties."


def import_config(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=FILES_HELP)],
    to: Annotated[Path, typer.Option(help="The file to write.")] = NEW_FILE,
    secrets: Annotated[str, typer.Option(help="The directory into which Kubernetes' Secrets will be mounted, one folder each.")] = _MOUNTED,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make one mm2.properties of the files that configure another replicator, and say what became of each entry. Connects to no cluster."""
    from ferry.cli.new_file import check_new_file, write_new_file
    from ferry.imports.importing import Fate, import_files
    from ferry.imports.rendering import rendered

    check_new_file(to, force=force)
    if any(file.exists() and to.exists() and file.samefile(to) for file in files):
        raise ArgumentError(f"{to} is one of the files to import, and would be overwritten: give another one with --to")
    imported = import_files(files, PurePosixPath(secrets))
    write_new_file(to, rendered(imported, files), force=force)
    counts = {fate.value: sum(row.fate is fate for row in imported.rows) for fate in Fate}
    content = {
        "file": to,
        "entries": [{**asdict(row), "fate": row.fate.value} for row in imported.rows],
        "counts": counts,
        "flows_switched_off": sorted(imported.off),
        "missing": imported.missing,
    }
    answer(content, _parts(imported, to, counts), as_json=as_json)


def _parts(imported: Imported, to: Path, counts: dict[str, int]) -> Iterator[Part]:
    from ferry.imports.importing import Fate

    for fate in Fate:
        cells = [(f"{Path(row.path).name}:{row.line}", row.key, row.becomes, row.why) for row in imported.rows if row.fate is fate]
        if cells:
            yield Table(fate.value, ("where", "entry", "becomes", "why"), cells)
    yield f"{to}: written, readable by you only; {', '.join(f'{count} {name}' for name, count in counts.items())}"
    yield from (Aside(f"warning: the file is not complete: {text}") for text in imported.missing)
    if imported.off:
        flows = ", ".join(sorted(imported.off))
        yield Aside(f"warning: {flows}: switched off, because of entries that cannot be kept: look for NOT KEPT in {to}")
    yield f"next: ferry doctor {to}"
