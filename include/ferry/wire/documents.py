"""JSON documents of topics, read strictly: what is not there as it was written is refused where it is read, not where it is used.

Python's reader takes NaN and Infinity, turns 1e999 into infinity, lets texts hold half a surrogate pair, which cannot be written again, and
answers deep nesting with RecursionError. None of these is in anything that Ferry, Connect or MirrorMaker 2 writes.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

_LONG = 1 << 63


def read_document(data: bytes | str) -> Any:
    """The document; ValueError when it is none."""
    try:
        return _DECODER.decode(data if isinstance(data, str) else data.decode())
    except RecursionError:
        raise ValueError("values in too many levels") from None


def text(value: object) -> str:
    """`value` if it is a text that can be written; TypeError or ValueError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    if not value.isascii():
        value.encode()
    return value


def number(value: object) -> int:
    """`value` if it is a whole number of 64 bits; TypeError or ValueError otherwise."""
    if type(value) is not int:
        raise TypeError(f"{value!r:.40} is no whole number")
    if not -_LONG <= value < _LONG:
        raise ValueError("a number of more than 64 bits")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _finite(digits: str) -> float:
    found = float(digits)
    if not math.isfinite(found):
        raise ValueError("a number that is too large")
    return found


# One for all documents: json.loads would make one for each.
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
