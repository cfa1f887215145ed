"""PEM texts that were pasted into a properties file without backslashes, and PEM texts in messages.

In a properties file a value ends with its line. So the first line of such a text is the value, and every other line looks like an entry of
its own, whose name, a part of a key, a message would show.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferry.config.secret import HIDDEN

if TYPE_CHECKING:
    from ferry.config.properties import Entry

BEGIN, END = "-----BEGIN", "-----END"
GOES_ON = "a PEM text continues in the next line: end each line except the last with \\n\\"
MISPLACED = "holds a PEM text, which is no part of it: remove the backslash at the end of the line above that text's key"
_BLOCK = re.compile(rf"{BEGIN}.*?(?:{END} [^-]*-----|\Z)", re.DOTALL)
# Base64 as javaproperties splits it: the padding is what separates key and value.
_BODY = re.compile(r"[A-Za-z0-9+/\s]+=?\s*")


def without_pem(text: str) -> str:
    """`text` without PEM texts, complete or not."""
    return _BLOCK.sub(HIDDEN, text)


def begins_pem(text: str) -> bool:
    """Whether `text` contains a PEM text."""
    return BEGIN in text


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
        if not _is_open(entry):
            kept.append(entry)
            follows = False
            continue
        if BEGIN not in entry.key:
            kept.append(entry)
        if not follows:
            begun.append(entry)
        end = _end(entries, place)
        if end is None:
            # The text has no end: every line up to the next text that looks like a part of it counts as one.
            beginning = next((at for at in range(place, len(entries)) if BEGIN in _text(entries[at])), len(entries))
            kept += [one for one in entries[place:beginning] if not (_BODY.fullmatch(one.key) and one.value.strip() in {"", "="})]
            place, follows = beginning, False
        else:
            place, follows = end + 1, True
    return kept, begun


def _end(entries: Sequence[Entry], start: int) -> int | None:
    """The index of the last line of the text that began before `start`; None if another text begins first."""
    for place in range(start, len(entries)):
        text = _text(entries[place])
        end, begin = text.find(END), text.find(BEGIN)
        if end >= 0 and (begin < 0 or end < begin):
            return _end(entries, place + 1) if _is_open(entries[place]) else place
        if begin >= 0:
            return None
    return None


def _is_open(entry: Entry) -> bool:
    text = _text(entry)
    return text.rfind(BEGIN) > text.rfind(END)


def _text(entry: Entry) -> str:
    return f"{entry.key} {entry.value}"
