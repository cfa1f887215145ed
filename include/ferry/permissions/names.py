"""The narrowest names for ACLs that cover a filter's list of Java expressions (pure).

An ACL holds a literal name, a prefix, or every name. The result always covers every name that an expression matches; `exact` says that it
covers no other name.
"""

import re
from collections.abc import Iterable, Sequence

from ferry.policy.java_expression import names_matched
from ferry.policy.java_tokens import UnsupportedExpression
from ferry.policy.name_covers import UNKNOWN, Cover

_PLAIN = re.compile(r"[\w.-]+")


def covering(elements: Sequence[str]) -> tuple[Cover, ...]:
    """Covers for every name that the list matches, without overlaps; empty for an empty list. Expressions were checked before.

    A dot in an element that is a plain name (`orders.eu`) counts as a dot, because it is seldom meant as "any character".
    """
    plain = [element for element in elements if _PLAIN.fullmatch(element)]
    others = [element for element in elements if element not in plain]
    try:
        for element in others:
            names_matched(element)  # an open group would continue in the next element
        found = names_matched("|".join(others)) if others else ()
    except UnsupportedExpression:  # where it cannot follow the expression, it must cover everything
        found, plain = UNKNOWN, []
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
