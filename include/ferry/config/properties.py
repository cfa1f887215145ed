"""A Java `.properties` file with the line of every entry.

Read as `java.util.Properties.load(InputStream)` does: ISO-8859-1 bytes with `\\uXXXX` escapes, backslash continuation, no comments inside a
line, leading blanks of a value dropped and trailing ones kept, the last of several equal keys wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from ferry.errors import ConfigError

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Entry:
    """One property as written; `line` counts from 1 and is where the key stands."""

    key: str
    value: str
    line: int


@dataclass(frozen=True)
class PropertiesFile:
    """`entries` by key, in the order of the file; `overridden` are the earlier ones of repeated keys."""

    path: Path
    entries: Mapping[str, Entry]
    overridden: tuple[Entry, ...] = ()


def read_properties(path: Path) -> PropertiesFile:
    """ConfigError when the file cannot be read or holds a malformed `\\u` escape."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}; give the path of an mm2.properties file") from problem
    return parse_properties(path, data)


def parse_properties(path: Path, data: bytes) -> PropertiesFile:
    """The entries of `data`; `path` is for messages."""
    entries: dict[str, Entry] = {}
    overridden: list[Entry] = []
    line = 1
    try:
        for element in javaproperties.parse(data):
            if isinstance(element, javaproperties.KeyValue):
                if element.key in entries:
                    overridden.append(entries.pop(element.key))
                entries[element.key] = Entry(element.key, element.value, line)
            line += len(_LINE_END.findall(element.source))
    except javaproperties.InvalidUEscapeError as problem:
        raise ConfigError(
            f"{path}:{line}: a \\u that four hexadecimal digits do not follow; write \\\\u for a backslash and a u"
        ) from problem
    return PropertiesFile(path, entries, tuple(overridden))
