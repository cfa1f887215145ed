"""Reads a Java `.properties` file, with the line of every entry.

It reads the same as `java.util.Properties.load(InputStream)`: ISO-8859-1 bytes with `\\uXXXX` escapes, backslash continuation, no comments
inside a line. Leading blanks of a value are dropped, trailing ones kept. The last of several equal keys wins.
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
    """A line number that knows its file, for entries from another file than the one that is loaded."""

    path: Path

    def __new__(cls, line: int, path: Path) -> Self:
        made = super().__new__(cls, line)
        made.path = path
        return made

    def __reduce__(self) -> tuple[type[LineOf], tuple[int, Path]]:
        return LineOf, (int(self), self.path)


@dataclass(frozen=True)
class Entry:
    """One property as written; `line` is the line of the key, from 1."""

    key: str
    value: str
    line: int


@dataclass(frozen=True)
class PropertiesFile:
    """`entries` by key, in the order of the file; `overridden`: earlier entries of repeated keys.

    For a file in another form (connector_file, legacy_file), `entries` are under the keys of mm2.properties, but each holds its original
    key. `notes`: warnings (line, key, what). `copies`: whether the file's flow copies records. `left_out`: the `….enabled` of other parts
    that it does not do. `words`: replaces keys of mm2.properties in a text by the file's own keys. `begun`: the entries at which a PEM text
    begins that continues on the following lines; those lines are no entries.
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
    """ConfigError if the file cannot be read or holds a malformed `\\u` escape."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as problem:  # ValueError: the path holds a NUL
        told = getattr(problem, "strerror", None) or problem
        raise ConfigError(f"{path}: cannot be read: {told}; give the path of an mm2.properties file") from problem
    return parse_properties(path, data)


def parse_properties(path: Path, data: bytes) -> PropertiesFile:
    """The entries of `data`; `path` is for messages only."""
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
