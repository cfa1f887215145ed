"""Lists of Java regular expressions, joined by `|`, matching whole names.

Python's `re` reads most Java expressions the same way. What it would read differently is translated or refused: a filter must never match
other topics than it did under MM2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferry.errors import ConfigError

# Java constructs that Python reads otherwise or not at all.
_REFUSED = (
    (re.compile(r"\\[pP]"), r"\p{…} classes"),
    (re.compile(r"\\[hHvVRXGEQNxc]|\\k<"), r"\h \H \v \V \R \X \G \Q…\E \N \x \c and named back references"),
    (re.compile(r"\\[zZ]"), r"\z and \Z"),
    (re.compile(r"\\0"), "octal escapes"),
    (re.compile(r"\(\?<[A-Za-z]"), "named groups"),
    (re.compile(r"\(\?[a-zA-Z]*-?[a-zA-Z]*[)\:]"), "inline flags"),
)
_PLAIN_GROUP = re.compile(r"\(\?:")


def java_pattern(elements: Sequence[str], key: str) -> re.Pattern[str] | None:
    """One pattern for a list of Java expressions; None for an empty list. ConfigError for what Python would match differently."""
    if not elements:
        return None
    for element in elements:
        _refuse_differences(element, key)
    joined = "|".join(elements)
    try:
        return re.compile(joined, re.ASCII | re.DOTALL if "\n" in joined else re.ASCII)
    except re.error as problem:
        raise ConfigError(f"{key}: {joined!r} is not a regular expression: {problem}") from problem


def _refuse_differences(element: str, key: str) -> None:
    bare = _PLAIN_GROUP.sub("(", element.replace("\\\\", ""))
    for pattern, construct in _REFUSED:
        if pattern.search(bare):
            raise ConfigError(f"{key}: {element!r} uses {construct}, which Ferry does not match as Java does; write it with plain classes")
    inside = 0
    for position, character in enumerate(bare):
        escaped = position > 0 and bare[position - 1] == "\\"
        if character == "[" and not escaped:
            inside += 1
        elif character == "]" and not escaped and inside:
            inside -= 1
        if inside > 1 or (inside and bare.startswith("&&", position)):
            raise ConfigError(f"{key}: {element!r} uses nested or intersected classes, which Python reads differently; write a plain class")
