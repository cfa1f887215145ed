"""What Python reads as JSON and nobody wrote is refused where it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from ferry.wire.strict_json import number, read_as, read_document, text

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("data", ['{"a": [1.5, -2e3, null]}', b'{"a": [1.5, -2e3, null]}'])
def test_bytes_and_texts_are_read_alike(data: bytes | str) -> None:
    assert read_document(data) == {"a": [1.5, -2000.0, None]}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("NaN", "NaN is no number"),
        (b"[-Infinity]", "-Infinity is no number"),
        ("1e999", "^a number that is too large$"),
        ("[-1e999]", "^a number that is too large$"),
        ("[" * 100_000, "^values in too many levels$"),
        (b"\xff", "utf-8"),
        ("", "Expecting value"),
        ("{} {}", "Extra data"),
    ],
)
def test_anything_else_is_refused(data: bytes | str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_document(data)


def test_texts_that_cannot_be_written_are_refused() -> None:
    assert [text(value) for value in ("", "a", "ü")] == ["", "a", "ü"]
    with pytest.raises(UnicodeEncodeError):
        text(read_document(r'"\ud800"'))
    for value in (None, 1, b"a", ["a"]):
        with pytest.raises(TypeError, match="is no text"):
            text(value)
    with pytest.raises(TypeError) as raised:
        text([5] * 1_000)
    assert len(str(raised.value)) < 60


@pytest.mark.parametrize("value", [0, -1, (1 << 63) - 1, -(1 << 63)])
def test_whole_numbers_of_64_bits(value: int) -> None:
    assert number(value) == value
    for beyond in ((1 << 63), -(1 << 63) - 1):
        with pytest.raises(ValueError, match=r"^a number of more than 64 bits$"):
            number(beyond)


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1]])
def test_what_is_no_whole_number(value: Any) -> None:
    with pytest.raises(TypeError, match="is no whole number"):
        number(value)


class Kind(StrEnum):
    ONE = "one"


@dataclass(frozen=True)
class Part:
    number: int
    kind: Kind = Kind.ONE


class Sum(NamedTuple):
    number: int

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Sum:
        return cls(document["sum"])


@dataclass(frozen=True)
class Whole:
    name: str
    seconds: float
    parts: tuple[Part, ...]
    place: tuple[str, int]
    ends: Mapping[int, int]
    total: Sum
    done: bool = False
    note: str | None = None
    anything: Any = None


DOCUMENT: dict[str, Any] = {
    "name": "n",
    "seconds": 3,
    "parts": [{"number": 1, "kind": "one", "of_tomorrow": 1}],
    "place": ["t", 0],
    "ends": {"7": 9},
    "total": {"sum": 5},
    "done": True,
    "note": "x",
    "anything": [1],
}
READ = Whole("n", 3.0, (Part(1),), ("t", 0), {7: 9}, Sum(5), done=True, note="x", anything=[1])


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in DOCUMENT.items() if key != name}


def test_a_dataclass_is_read_by_the_types_of_its_fields() -> None:
    assert read_as(Whole, DOCUMENT) == READ
    assert read_as(Whole, {**without("name"), "called": "n"}, names={"name": "called"}) == READ
    assert read_as(Whole, without("note"), optional=("note",)) == replace(READ, note=None)


@pytest.mark.parametrize(
    "damage",
    [
        {"name": 1},
        {"seconds": "3"},
        {"seconds": True},
        {"parts": {}},
        {"parts": [{}]},
        {"parts": [{"number": 1, "kind": "two"}]},
        {"place": ["t"]},
        {"place": ["t", 0, 0]},
        {"ends": {"x": 1}},
        {"ends": {"7": 1.5}},
        {"done": 1},
        {"note": 1},
    ],
)
def test_a_field_of_another_type_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError, KeyError)):
        read_as(Whole, {**DOCUMENT, **damage})


@pytest.mark.parametrize("missing", DOCUMENT)
def test_a_field_that_is_not_optional_must_be_there(missing: str) -> None:
    with pytest.raises(KeyError, match=missing):
        read_as(Whole, without(missing))
