"""Output of commands: tables for people, one JSON document for scripts, notices on stderr."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ferry.pipeline.tables import Table as ShownTable

# The width of tables in a pipe: narrow columns would break topic names.
PIPED_WIDTH = 180

notices = Console(stderr=True, highlight=False, soft_wrap=True)


def complain(text: str) -> None:
    """One line on stderr."""
    print(f"ferry: {text}", file=sys.stderr)  # noqa: T201 - plain, so that scripts can grep it


def notice(text: str) -> None:
    """Progress on stderr, so that stdout holds the document alone."""
    notices.print(text, markup=False)


def document(content: Mapping[str, Any]) -> None:
    """The JSON document of a command on stdout."""
    print(json.dumps(content, indent=2, default=str))  # noqa: T201 - stdout is the interface


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout, with numbers aligned to the right. A cell of None stays empty."""
    content = [["" if cell is None else cell for cell in row] for row in rows]
    drawn = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD)
    for index, column in enumerate(columns):
        numeric = bool(content) and all(isinstance(row[index], int | float) or row[index] == "" for row in content)
        drawn.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in content:
        drawn.add_row(*(f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell) for cell in row))
    draw(drawn)


def draw(drawn: Table) -> None:
    """A drawn table on stdout."""
    Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH).print(drawn)


def line(text: str) -> None:
    """One line on stdout."""
    print(text)  # noqa: T201 - stdout is the interface


def show(parts: Iterable[str | ShownTable]) -> None:
    """Tables and lines on stdout."""
    for part in parts:
        if isinstance(part, str):
            line(part)
        else:
            table(*part)
