"""Lists of Java regular expressions, joined by `|`, matching whole names, as MM2's filters do.

A filter must match exactly the names that it matches in MM2. So expressions that Python would match differently are translated or refused.
The elements are joined first, so an open group or an inline flag of one element affects the next, as in MM2.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from ferry.errors import ConfigError
from ferry.policy.java_expression import translate
from ferry.policy.java_tokens import UnsupportedExpression

# Kafka allows any text as the id of a group; names of topics and of topic configs are ASCII.
_ANY_NAMES = frozenset({"groups", "groups.exclude", "group pattern", "ferry.groups.latest"})
_NOTHING = re.compile("(?!)")


def java_pattern(elements: Sequence[str], key: str) -> re.Pattern[str]:
    """One pattern for the list of property `key`, for `fullmatch`; empty: it matches nothing. ConfigError for what Ferry cannot match."""
    if not elements:
        return _NOTHING
    ascii_names = key not in _ANY_NAMES
    try:
        return _compiled("|".join(elements), ascii_names)
    except UnsupportedExpression as problem:
        told = [(element, found) for element in elements if (found := _problem(element, ascii_names))]
        culprit, what = told[0] if told else ("|".join(elements), str(problem))
        comma = " (a comma separates elements, inside {} too)" if culprit.count("{") > culprit.count("}") else ""
        mend = "Java refuses it, or Ferry cannot match it exactly as Java does; write it differently"
        raise ConfigError(f"{key}: {culprit!r} uses {what}{comma}: {mend}") from problem


@lru_cache(maxsize=256)
def _compiled(expression: str, ascii_names: bool) -> re.Pattern[str]:
    try:
        return re.compile(translate(expression, ascii_names=ascii_names))
    except (re.error, OverflowError) as problem:
        raise UnsupportedExpression(str(problem)) from problem
    except RecursionError as problem:
        raise UnsupportedExpression("groups in too many levels") from problem


def _problem(element: str, ascii_names: bool) -> str:
    """Why an element by itself is refused; empty if it is not."""
    try:
        _compiled(element, ascii_names)
    except UnsupportedExpression as problem:
        return str(problem)
    return ""
