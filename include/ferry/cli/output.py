"""Output of commands: tables for people, one JSON document for scripts, notices on stderr."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

from rich.console import Console

from ferry.errors import ArgumentError
from ferry.pipeline.drawn_tables import draw
from ferry.pipeline.tables import Table

PIPED_WIDTH = 180
# Of documents that have no version of their own.
DOCUMENT_VERSION = 1


class Prose(str):
    """A line of words. A terminal that is too narrow for it gets several lines, and no word is cut."""


class Aside(str):
    """A line that goes to stderr."""


Part = str | Table


def complaint(problem: object) -> Aside:
    """What failed, for stderr."""
    return Aside(f"ferry: {problem}")


def notice(text: str) -> None:
    """Progress on stderr, so that stdout holds the document alone."""
    print(text, file=sys.stderr)  # noqa: T201 - plain, so that scripts can grep it


def line(text: str) -> None:
    print(text)  # noqa: T201 - stdout is the interface


def answer(content: Mapping[str, Any], parts: Iterable[Part], *, as_json: bool, report: Path | None = None) -> None:
    """What a command found: with --json the document on stdout, else its `parts`. The document also to the file `report`. ArgumentError."""
    if as_json:
        line(json.dumps({"version": DOCUMENT_VERSION, **content}, indent=2, default=str))
    else:
        show(parts)
    if report is not None:
        with naming("--report", report):
            report.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def check_report_file(path: Path | None) -> None:
    """ArgumentError when `path` is given and cannot be written, so that the user learns it before a run. Creates no file."""
    if path is not None:
        new = not path.exists()
        with naming("--report", path), path.open("a", encoding="utf-8"):
            pass
        if new:
            path.unlink()


@contextmanager
def naming(option: str, path: Path) -> Iterator[None]:
    """ArgumentError if the file of an option cannot be written inside."""
    try:
        yield
    except OSError as problem:
        raise ArgumentError(f"{option} {path}: cannot be written: {problem.strerror}") from problem


def show(parts: Iterable[Part]) -> None:
    """Lines and tables on stdout, asides on stderr."""
    for part in parts:
        match part:
            case Aside():
                notice(part)
            case Prose() if sys.stdout.isatty():
                line(fill(part, get_terminal_size().columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
            case str():
                line(part)
            case _:
                draw(part, Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH))
