"""Reads a Java `.properties` file, with the line of every entry.

It reads the same as `java.util.Properties.load(InputStream)`: ISO-8859-1 bytes with `\\uXXXX` escapes, backslash continuation, no comments
inside a line. Leading blanks of a value are dropped, trailing ones kept. The last of several equal keys wins.

People paste PEM texts into the file and forget the backslashes. Then the value ends with the first line of the text. Each other line looks
like an entry of its own, and its name is a part of a private key. So this module drops such lines: a message could show the name.
"""

import codecs
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import javaproperties

from ferry.config.secret import HIDDEN
from ferry.errors import ConfigError

PEM_BEGIN, PEM_END = "-----BEGIN", "-----END"
GOES_ON = "a PEM text continues in the next line: end each line except the last with \\n\\"
MISPLACED = "holds a PEM text, which is no part of it: remove the backslash at the end of the line above that text's key"
_MARKER = re.compile(f"{PEM_BEGIN}|{PEM_END}")
_BLOCK = re.compile(rf"{PEM_BEGIN}.*?(?:{PEM_END} [^-]*-----|\Z)", re.DOTALL)
# Base64 as javaproperties splits it: the padding separates key and value.
_BODY = re.compile(r"[A-Za-z0-9+/\s]+=?\s*")
_ESCAPE = re.compile(r"\\([\\:=#!]|(?<=.\\) )")
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Entry:
    """One property as written. `line`, `path`: where its key stands; lines count from 1. 0 and None: no file has it."""

    key: str
    value: str
    line: int
    path: Path | None = None


@dataclass(frozen=True)
class PropertiesFile:
    """The entries of one file, also of one in another form than mm2.properties (connector_file, legacy_file)."""

    path: Path
    # By the key of mm2.properties, in the order of the file. An entry of a file in another form holds its original key.
    entries: Mapping[str, Entry]
    overridden: tuple[Entry, ...] = ()  # Earlier entries of repeated keys.
    notes: tuple[tuple[Entry, str], ...] = ()  # Warnings.
    copies: bool = True  # Whether the file's flow copies records.
    left_out: tuple[str, ...] = ()  # The `….enabled` of the other parts that the file's flow does not do.
    words: Callable[[str], str] = str  # Replaces keys of mm2.properties in a text by the file's own keys.
    # Entries where a PEM text begins that continues on the following lines. Those lines are no entries.
    begun: tuple[Entry, ...] = ()


def read_properties(path: Path) -> PropertiesFile:
    """ConfigError if the file cannot be read or holds a malformed `\\u` escape."""
    return parse_properties(path, read_bytes(path))


def read_bytes(path: Path) -> bytes:
    """The content of a config file, without the byte order mark that editors of Windows write. ConfigError if it cannot be read."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as problem:  # ValueError: the path holds a NUL
        told = getattr(problem, "strerror", None) or problem
        raise ConfigError(f"{path}: cannot be read: {told}; give the path of an mm2.properties file") from problem
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError(f"{path}: is UTF-16; save it as UTF-8")
    return data.removeprefix(codecs.BOM_UTF8)


def parse_properties(path: Path, data: bytes) -> PropertiesFile:
    """The entries of `data`. `path`: where they come from, for messages only."""
    written: list[Entry] = []
    line = 1
    try:
        for element in javaproperties.parse(data):
            if isinstance(element, javaproperties.KeyValue):
                written.append(Entry(element.key, element.value, line, path))
            line += len(_LINE_END.findall(element.source))
    except javaproperties.InvalidUEscapeError as problem:
        what = "a \\u that four hexadecimal digits do not follow; write \\\\u for a backslash and a u"
        raise ConfigError(f"{path}:{line}: {what}") from problem
    kept, begun = without_pasted_lines(written)
    entries: dict[str, Entry] = {}
    overridden: list[Entry] = []
    for entry in kept:
        if entry.key in entries:
            overridden.append(entries.pop(entry.key))
        entries[entry.key] = entry
    return PropertiesFile(path, entries, tuple(overridden), begun=tuple(begun))


def entry_line(key: str, value: str) -> str:
    """The line that sets `key`, in ASCII."""
    # javaproperties escapes `:`, `=`, `#`, `!` and each blank, which is not necessary in values and makes them hard to read.
    escaped = _ESCAPE.sub(lambda found: found[0] if found[1] == "\\" else found[1], javaproperties.escape(value))
    return f"{javaproperties.escape(key)} = {escaped}"


def without_pem(text: str) -> str:
    """`text` without PEM texts, complete or not."""
    return _BLOCK.sub(HIDDEN, text)


def without_pasted_lines(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """`entries`, in the order of their lines, without lines of PEM texts; and the entries where such texts begin.

    An entry whose value begins a text stays. Several texts in a row, as in a chain of certificates, count once.
    """
    kept: list[Entry] = []
    begun: list[Entry] = []
    place, follows = 0, False
    while place < len(entries):
        entry = entries[place]
        place += 1
        if _markers(entry)[-1:] != [PEM_BEGIN]:
            kept.append(entry)
            follows = False
            continue
        if PEM_BEGIN not in entry.key:
            kept.append(entry)
        if not follows:
            begun.append(entry)
        end = _end(entries, place)
        if end is None:
            # The text has no end: every line up to the next text that looks like a part of it counts as one.
            beginning = next((at for at in range(place, len(entries)) if PEM_BEGIN in _markers(entries[at])), len(entries))
            kept += [one for one in entries[place:beginning] if not (_BODY.fullmatch(one.key) and one.value.strip() in {"", "="})]
            place, follows = beginning, False
        else:
            place, follows = end + 1, True
    return kept, begun


def _end(entries: Sequence[Entry], start: int) -> int | None:
    """The index of the last line of the text that began before `start`; None if another text begins first."""
    for place in range(start, len(entries)):
        markers = _markers(entries[place])
        if markers[:1] == [PEM_BEGIN]:
            return None
        if markers[-1:] == [PEM_END]:  # otherwise another text begins behind it
            return place
    return None


def _markers(entry: Entry) -> list[str]:
    """The beginnings and ends of PEM texts in an entry, in their order."""
    return _MARKER.findall(f"{entry.key} {entry.value}")
