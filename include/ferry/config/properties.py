"""A Java `.properties` file with the line of every entry.

Read as `java.util.Properties.load(InputStream)` does: ISO-8859-1 bytes with `\\uXXXX` escapes, backslash continuation, no comments inside a
line, leading blanks of a value dropped and trailing ones kept, the last of several equal keys wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import javaproperties

from ferry.config.pasted_pem import without_pasted_lines
from ferry.errors import ConfigError

_LINE_END = re.compile(r"\r\n|\n|\r")


class LineOf(int):
    """A line number that knows its file: of entries that came from another file than the one that is loaded."""

    path: Path

    def __new__(cls, line: int, path: Path) -> Self:
        """Line `line` of the file at `path`."""
        made = super().__new__(cls, line)
        made.path = path
        return made

    def __reduce__(self) -> tuple[type[LineOf], tuple[int, Path]]:
        """For pickling."""
        return LineOf, (int(self), self.path)


@dataclass(frozen=True)
class Entry:
    """One property as written; `line` counts from 1 and is where the key stands."""

    key: str
    value: str
    line: int


@dataclass(frozen=True)
class PropertiesFile:
    """`entries` by key, in the order of the file; `overridden` are the earlier ones of repeated keys.

    Of a file in another form (connector_file, legacy_file) `entries` are under the keys of mm2.properties, each with the key that it was
    written with; `notes` are warnings (line, key, what), `copies` says whether it means copying at all, `left_out` names the `….enabled` of
    what it does not mean either, and `words` gives a text that holds keys of mm2.properties in the file's own words. `begun` are the
    entries at which a PEM text begins that goes on behind them; its lines are no entries.
    """

    path: Path
    entries: Mapping[str, Entry]
    overridden: tuple[Entry, ...] = ()
    notes: tuple[tuple[int, str, str], ...] = ()
    copies: bool = True
    left_out: tuple[str, ...] = ()
    words: Callable[[str], str] = str
    begun: tuple[Entry, ...] = ()


def read_properties(path: Path) -> PropertiesFile:
    """ConfigError when the file cannot be read or holds a malformed `\\u` escape."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as problem:  # ValueError: the path holds a NUL
        told = getattr(problem, "strerror", None) or problem
        raise ConfigError(f"{path}: cannot be read: {told}; give the path of an mm2.properties file") from problem
    return parse_properties(path, data)


def parse_properties(path: Path, data: bytes) -> PropertiesFile:
    """The entries of `data`; `path` is for messages."""
    written: list[Entry] = []
    line = 1
    try:
        for element in javaproperties.parse(data):
            if isinstance(element, javaproperties.KeyValue):
                written.append(Entry(element.key, element.value, line))
            line += len(_LINE_END.findall(element.source))
    except javaproperties.InvalidUEscapeError as problem:
        raise ConfigError(
            f"{path}:{line}: a \\u that four hexadecimal digits do not follow; write \\\\u for a backslash and a u"
        ) from problem
    kept, begun = without_pasted_lines(written)
    entries: dict[str, Entry] = {}
    overridden: list[Entry] = []
    for entry in kept:
        if entry.key in entries:
            overridden.append(entries.pop(entry.key))
        entries[entry.key] = entry
    return PropertiesFile(path, entries, tuple(overridden), begun=tuple(begun))
