"""Covers: names and prefixes that include every name that an expression matches (pure). An ACL can be for a name or a prefix.

`orders` stays a name, `orders.*` becomes the prefix `orders`, and alternatives become several names. Where Ferry finds no narrower cover,
it takes the prefix of every name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os.path import commonprefix

# More alternatives than this become one prefix, which all of them have in common.
MOST_NAMES = 64


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
EMPTY: tuple[Cover, ...] = (Cover(""),)
# The cover of an anchor or a look-around: it adds no character to a name, but fewer names may match.
NARROWED: tuple[Cover, ...] = (Cover("", exact=False),)
UNKNOWN: tuple[Cover, ...] = (replace(EVERYTHING, exact=False),)


def joined(first: tuple[Cover, ...], then: tuple[Cover, ...]) -> tuple[Cover, ...]:
    """The covers of `first` followed by `then`. An open cover stays as it is, and is exact only if nothing follows."""
    found = []
    for cover in first:
        if cover.open:
            found.append(cover if then == EMPTY else replace(cover, exact=False))
        else:
            found += [Cover(cover.text + more.text, more.open, cover.exact and more.exact) for more in then]
    return few(tuple(found))


def repeated(covers: tuple[Cover, ...], bounds: str, least: int) -> tuple[Cover, ...]:
    """The covers with the quantifier `bounds` behind them, which repeats them at least `least` times."""
    if bounds == "?":
        return (*EMPTY, *covers)
    return tuple(Cover(cover.text, open=True, exact=False) for cover in covers) if least else UNKNOWN


def few(covers: tuple[Cover, ...]) -> tuple[Cover, ...]:
    if len(covers) <= MOST_NAMES:
        return covers
    return (Cover(commonprefix([cover.text for cover in covers]), open=True, exact=False),)  # noqa: RUF071 - of names, not of paths
