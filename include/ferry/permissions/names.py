"""The narrowest names for ACLs that cover a filter's list of Java expressions (pure).

An ACL holds a literal name, a prefix, or every name. So `orders` stays a literal, `orders.*` becomes the prefix `orders`, and alternatives
become several names. Where this module cannot follow the expression (a class, a flag, a look-around), the prefix ends. The result always
covers every name that the expression matches; `exact` says that it covers no other name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from ferry.policy.java_classes import Reading, read_class
from ferry.policy.java_tokens import Tokens, UnsupportedExpression

# More alternatives than this become one prefix, which they have in common.
MOST_NAMES = 64
_PLAIN = re.compile(r"[\w.-]+")
_LOOKING = ("?=", "?!", "?<=", "?<!")
_FIXED_GROUPS = ("?:", "?>")


@dataclass(frozen=True, order=True)
class Cover:
    """A name, or (`open`) every name that begins with `text`. `exact`: the expression matches all of these names."""

    text: str
    open: bool = False
    exact: bool = True

    def covers(self, other: Cover) -> bool:
        """Whether this cover includes every name of `other`."""
        return other.text.startswith(self.text) if self.open else self == replace(other, exact=self.exact)


EVERYTHING = Cover("", open=True)
_EMPTY: tuple[Cover, ...] = (Cover(""),)
_UNKNOWN: tuple[Cover, ...] = (replace(EVERYTHING, exact=False),)


def covering(elements: Sequence[str]) -> tuple[Cover, ...]:
    """Covers for every name that the list matches, without overlaps; empty for an empty list. Expressions were checked before.

    A dot in an element that is a plain name (`orders.eu`) counts as a dot, because it is seldom meant as "any character".
    """
    plain = [element for element in elements if _PLAIN.fullmatch(element)]
    others = [element for element in elements if element not in plain]
    try:
        for element in others:
            _Reader(element).whole()  # an open group would continue in the next element
        found = _Reader("|".join(others)).whole() if others else ()
    except UnsupportedExpression:  # where it cannot follow the expression, it must cover everything
        found, plain = _UNKNOWN, []
    named = tuple(Cover(element, exact="." not in element) for element in plain)
    return without_covered(cover for cover in (*found, *named) if cover.text or cover.open)


def without_covered(covers: Iterable[Cover]) -> tuple[Cover, ...]:
    """The covers that no other one includes."""
    kept: list[Cover] = []
    # Exact ones first, so that of two that say the same the exact one stays.
    for cover in sorted(set(covers), key=lambda entry: (len(entry.text), not entry.open, not entry.exact)):
        if not any(other.covers(cover) for other in kept):
            kept.append(cover)
    return tuple(sorted(kept))


class _Reader:
    """Reads an expression from the left, as far as it can tell the names."""

    def __init__(self, expression: str) -> None:
        self._tokens = Tokens(expression)
        self._depth = 0

    def whole(self) -> tuple[Cover, ...]:
        found = self._alternatives()
        if not self._tokens.ended:
            raise UnsupportedExpression("a ) without its (")
        return found

    def _alternatives(self) -> tuple[Cover, ...]:
        done: tuple[Cover, ...] = ()
        current = _EMPTY
        while not (self._tokens.ended or self._tokens.sees(")")):
            if self._tokens.take("|"):
                done, current = (*done, *current), _EMPTY
            else:
                current = _joined(current, self._repeated())
        return _few((*done, *current))

    def _repeated(self) -> tuple[Cover, ...]:
        dot = self._tokens.sees(".")
        atom = self._atom()
        repeated: tuple[Cover, ...]
        if self._tokens.take("*"):
            repeated = (EVERYTHING,) if dot else _UNKNOWN
        elif self._tokens.take("+"):
            repeated = tuple(Cover(cover.text, open=True, exact=False) for cover in atom)
        elif self._tokens.take("?"):
            repeated = (*_EMPTY, *atom)
        elif self._tokens.take("{"):
            least = self._tokens.until("}").partition(",")[0]
            some = least.isdecimal() and int(least) > 0
            repeated = tuple(Cover(cover.text, open=True, exact=False) for cover in atom) if some else _UNKNOWN
        else:
            return atom
        if not self._tokens.take("?"):  # lazy and possessive match no other names
            self._tokens.take("+")
        return repeated

    def _atom(self) -> tuple[Cover, ...]:
        token = self._tokens.read()
        if token.quoted:
            return (Cover(token.character),)
        match token.character:
            case "\\":
                return self._escape()
            case "[":
                read_class(self._tokens, Reading(ascii_names=True))
                return _UNKNOWN
            case "(":
                return self._group()
            case ".":
                return _UNKNOWN
            case "^" | "$":
                return _EMPTY if self._at_edge(token.character) else (Cover("", exact=False),)
            case "*" | "+" | "?" | "{":
                raise UnsupportedExpression(f"{token.character} with nothing to repeat")
        return (Cover(token.character),)

    def _at_edge(self, anchor: str) -> bool:
        """Whether the anchor just read begins or ends an alternative of the whole expression; elsewhere it may match nothing (`a^`)."""
        if self._depth:
            return False
        if anchor == "^":
            return self._tokens.position == 1 or self._tokens.sees("|", -2)
        return self._tokens.ended or self._tokens.sees("|")

    def _escape(self) -> tuple[Cover, ...]:
        letter = self._tokens.syntax()
        if not letter.isalnum():
            return (Cover(letter),)
        if letter == "c":
            self._tokens.read()
        return _UNKNOWN

    def _group(self) -> tuple[Cover, ...]:
        looking = any(self._tokens.take(kind) for kind in _LOOKING)
        if not looking and not any(self._tokens.take(kind) for kind in _FIXED_GROUPS):
            if self._tokens.take("?<"):
                self._tokens.until(">")
            elif self._tokens.sees("?"):
                raise UnsupportedExpression("flags, which change what stands behind them")
        self._depth += 1
        inside = self._alternatives()
        self._depth -= 1
        if not self._tokens.take(")"):
            raise UnsupportedExpression("a ( that is not closed")
        # A look-around only narrows.
        return (Cover("", exact=False),) if looking else inside


def _joined(first: tuple[Cover, ...], then: tuple[Cover, ...]) -> tuple[Cover, ...]:
    """The covers of `first` followed by `then`. An open cover stays as it is, and is exact only if nothing follows."""
    found = []
    for cover in first:
        if cover.open:
            found.append(cover if then == _EMPTY else replace(cover, exact=False))
        else:
            found += [Cover(cover.text + more.text, more.open, cover.exact and more.exact) for more in then]
    return _few(tuple(found))


def _few(covers: tuple[Cover, ...]) -> tuple[Cover, ...]:
    if len(covers) <= MOST_NAMES:
        return covers
    first, last = min(cover.text for cover in covers), max(cover.text for cover in covers)
    common = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return (Cover(common, open=True, exact=False),)
