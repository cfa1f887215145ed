"""Reads JSON documents of topics strictly, so that wrong values raise an error here and not where they are used.

Python's reader accepts NaN and Infinity, turns 1e999 into infinity, accepts half a surrogate pair, which cannot be written again, and
raises RecursionError for deep nesting. Ferry, Connect and MirrorMaker 2 write none of these.
"""

import json
import math
from collections.abc import Callable, Container, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache, partial
from types import MappingProxyType, UnionType
from typing import Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
Read = Callable[[Any], Any]

_LONG = 1 << 63


def read_document(data: bytes | str) -> Any:
    """The document. ValueError if it is no JSON."""
    try:
        return _DECODER.decode(data if isinstance(data, str) else data.decode())
    except RecursionError:
        raise ValueError("values in too many levels") from None


def text(value: object) -> str:
    """`value` if it is a text that can be encoded; else TypeError or ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    if not value.isascii():
        value.encode()
    return value


def number(value: object) -> int:
    """`value` if it is a whole number of 64 bits; else TypeError or ValueError."""
    if type(value) is not int:
        raise TypeError(f"{value!r:.40} is no whole number")
    if not -_LONG <= value < _LONG:
        raise ValueError("a number of more than 64 bits")
    return value


def read_as(
    kind: type[T], document: Mapping[str, Any], *, names: Mapping[str, str] = MappingProxyType({}), optional: Container[str] = ()
) -> T:
    """A dataclass from a JSON object, each field by its type; KeyError, TypeError or ValueError for anything else.

    `names`: the names of fields in the document, if they are others. `optional`: fields that take their default if the document lacks them.
    Any other missing field is an error: its default would say something that nobody wrote. Names in the document that are no fields are
    ignored, because a newer Ferry may have added them. If the class of a field has `of_document`, that reads the field.
    """
    found = {}
    # Every class can be hashed, but mypy does not know this of a type variable.
    for name, read in _fields(kind).items():  # type: ignore[arg-type]
        written = names.get(name, name)
        if name not in optional or written in document:
            found[name] = read(document[written])
    return kind(**found)


@cache
def _fields(kind: Any) -> Mapping[str, Read]:
    types = get_type_hints(kind)
    return {field.name: _reader(types[field.name]) for field in fields(kind)}


def _reader(kind: Any) -> Read:
    if hasattr(kind, "of_document"):
        reading: Read = kind.of_document
        return reading
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple and arguments[-1] is Ellipsis:
        each = _reader(arguments[0])
        return lambda value: tuple(map(each, _listed(value)))
    if origin is tuple or hasattr(kind, "_make"):  # a NamedTuple
        parts, made = [_reader(part) for part in arguments or get_type_hints(kind).values()], getattr(kind, "_make", tuple)
        return lambda value: made(read(entry) for read, entry in zip(parts, _listed(value), strict=True))
    if origin in {dict, Mapping}:
        key, content = int if arguments[0] is int else _reader(arguments[0]), _reader(arguments[1])
        return lambda value: {key(name): content(entry) for name, entry in value.items()}
    if origin is UnionType:
        some = _reader(arguments[0])
        return lambda value: None if value is None else some(value)
    if isinstance(kind, type) and is_dataclass(kind):
        return partial(read_as, kind)
    plain: Mapping[Any, Read] = {str: text, int: number, float: real, bool: _truth, datetime: parse_time, Any: lambda value: value}
    return plain.get(kind, kind)


def real(value: object) -> float:
    """`value` as a float if it is a number; TypeError otherwise."""
    if type(value) not in {int, float}:
        raise TypeError(f"{value!r:.40} is no number")
    return float(value)  # type: ignore[arg-type]


def parse_time(value: str) -> datetime:
    """An ISO 8601 time; without an offset it is UTC. ValueError or TypeError when it is not one."""
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r:.40} is neither true nor false")
    return value


def _listed(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.40} is no list")
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
