"""Java expressions, matched as java.util.regex itself matches them, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from tests.policy.expressions import ACCEPTED, EXPRESSIONS, NAMES, REFUSED, REFUSED_WITH_ANY_NAMES, WIDE_NAMES

from ferry.errors import ConfigError
from ferry.policy.java_patterns import java_pattern

if TYPE_CHECKING:
    from tests.policy.conftest import JavaMatches


def matched(expression: str, key: str, names: list[str]) -> set[str] | None:
    try:
        pattern = java_pattern([expression], key)
    except ConfigError:
        return None
    return {name for name in names if pattern.fullmatch(name)}


@pytest.mark.java
@pytest.mark.parametrize("expression", ACCEPTED)
def test_what_is_accepted_matches_as_in_java(java_matches: JavaMatches, expression: str) -> None:
    expected = java_matches(expression, NAMES)
    assert expected is not None
    assert expected not in (set(), set(NAMES))
    assert matched(expression, "topics", NAMES) == expected
    if expression not in REFUSED_WITH_ANY_NAMES:
        assert matched(expression, "groups", WIDE_NAMES) == java_matches(expression, WIDE_NAMES)


@pytest.mark.java
@settings(max_examples=200, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(expression=EXPRESSIONS)
def test_generated_expressions_match_as_in_java_or_are_refused(java_matches: JavaMatches, expression: str) -> None:
    for key, names in (("topics.exclude", NAMES), ("groups.exclude", WIDE_NAMES)):
        found = matched(expression, key, names)
        assert found is None or found == java_matches(expression, names)


@pytest.mark.unit
@pytest.mark.parametrize("expression", REFUSED)
def test_what_python_would_read_otherwise_is_refused(expression: str) -> None:
    with pytest.raises(ConfigError, match=r"^topics: .* uses "):
        java_pattern([expression], "topics")


@pytest.mark.unit
@pytest.mark.parametrize("expression", REFUSED_WITH_ANY_NAMES)
def test_what_depends_on_javas_version_is_refused_for_groups(expression: str) -> None:
    java_pattern([expression], "topics")
    with pytest.raises(ConfigError, match=r"^groups.exclude: .* Java's version"):
        java_pattern([expression], "groups.exclude")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("elements", "name", "matches"),
    [
        (["a", "b.*"], "bcd", True),
        (["a", "b.*"], "ab", False),
        (["a|b", "c"], "b", True),
        # Joined first: what one element opens reaches into the next.
        (["(?i)a", "b"], "B", True),
        (["(a", "b)c"], "ac", True),
        ([r"\Qa", "b"], "a|b", True),
        ([r"\Qa", "b"], "a", False),
        ([], "a", False),
        ([], "", False),
    ],
)
def test_elements_are_joined(elements: list[str], name: str, matches: bool) -> None:
    pattern = java_pattern(elements, "topics")
    assert (pattern.fullmatch(name) is not None) is matches


@pytest.mark.unit
def test_the_element_that_is_refused_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^topics: 'b\(' uses a \( that is not closed"):
        java_pattern(["a", "b(", "c"], "topics")


@pytest.mark.unit
def test_depth_has_an_end() -> None:
    with pytest.raises(ConfigError, match="too many levels"):
        java_pattern(["(" * 5000 + ")" * 5000], "topics")
