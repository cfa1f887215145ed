"""Sets of code points, for character classes: union, intersection, complement, and the class for Python's `re`.

A set is a sorted tuple of inclusive ranges `(first, last)` without overlap.
"""

import sys
import unicodedata
from collections.abc import Iterable
from itertools import chain

CodePoints = tuple[tuple[int, int], ...]

LAST = sys.maxunicode
EVERY: CodePoints = ((0, LAST),)
# The distance from `A` to `a` in ASCII.
_CASE = 32


def code_points(*parts: str | tuple[int, int]) -> CodePoints:
    """The characters of texts, and inclusive ranges."""
    ranges = [part for part in parts if isinstance(part, tuple)]
    return union(ranges, [(ord(character), ord(character)) for part in parts if isinstance(part, str) for character in part])


def union(*sets: Iterable[tuple[int, int]]) -> CodePoints:
    result: list[tuple[int, int]] = []
    for first, last in sorted(chain.from_iterable(sets)):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def complement(points: CodePoints) -> CodePoints:
    result, start = [], 0
    for first, last in points:
        if first > start:
            result.append((start, first - 1))
        start = last + 1
    return (*result, (start, LAST)) if start <= LAST else tuple(result)


def intersection(left: CodePoints, right: CodePoints) -> CodePoints:
    return complement(union(complement(left), complement(right)))


def both_cases(points: CodePoints) -> CodePoints:
    """The set with the other case of every ASCII letter, as Java's CASE_INSENSITIVE without UNICODE_CASE."""
    upper, lower = intersection(points, ((65, 90),)), intersection(points, ((97, 122),))
    moved = [(first + _CASE, last + _CASE) for first, last in upper] + [(first - _CASE, last - _CASE) for first, last in lower]
    return union(points, moved)


def ascii_of_category(prefix: str) -> CodePoints:
    """The ASCII characters of a Unicode category: the same in every version of Unicode."""
    return code_points("".join(chr(point) for point in range(128) if unicodedata.category(chr(point)).startswith(prefix)))


def python_class(points: CodePoints) -> str:
    """The expression for one character of the set; for the empty set one that matches nothing."""
    if not points:
        return "(?!)"
    if len(points) == 1 and points[0][0] == points[0][1]:
        return _escaped(points[0][0])
    # Python compiles a class with high ranges slowly. A set up to the last code point is the complement of a low one.
    negated = points != EVERY and points[-1][1] == LAST
    ranges = complement(points) if negated else points
    inside = "".join(_escaped(first) if first == last else f"{_escaped(first)}-{_escaped(last)}" for first, last in ranges)
    return f"[{'^' if negated else ''}{inside}]"


def _escaped(point: int) -> str:
    character = chr(point)
    return character if character.isascii() and (character.isalnum() or character == "_") else f"\\U{point:08x}"
