"""Which topics a flow copies: filters read as Java reads them, and no loops."""

from __future__ import annotations

import pytest

from ferry.errors import ConfigError
from ferry.policy.default_filters import DefaultTopicFilter
from ferry.policy.filters import java_pattern
from ferry.policy.naming import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from ferry.policy.selection import TopicRules

pytestmark = pytest.mark.unit

ALL = DefaultTopicFilter([".*"], [])
DEFAULT = DefaultReplicationPolicy()


@pytest.mark.parametrize(
    ("name", "copied"),
    [
        ("t", True),
        ("B.t", False),
        ("C.B.t", False),
        ("A.t", False),
        ("C.t", True),
        ("C.D.t", True),
        ("heartbeats", True),
        ("C.heartbeats", True),
        ("B.heartbeats", False),
        ("__consumer_offsets", False),
        ("mm2-ferry-ledger.X.internal", False),
        ("mm2-ferry-anything", False),
    ],
)
def test_cycles_and_internal_topics(name: str, copied: bool) -> None:
    assert (TopicRules("A", "B", DEFAULT, ALL).why_not(name) is None) is copied


def test_heartbeats_pass_whatever_the_filter_says() -> None:
    nothing = DefaultTopicFilter([], [])
    assert TopicRules("A", "B", DEFAULT, nothing).why_not("heartbeats") is None
    assert TopicRules("A", "B", DEFAULT, nothing).why_not("t") == "not in topics"


@pytest.mark.parametrize("policy", [DEFAULT, IdentityReplicationPolicy(source_alias="A")])
def test_ferry_topics_never_pass(policy: ReplicationPolicy) -> None:
    assert TopicRules("A", "B", policy, ALL).why_not("mm2-ferry-state.A.internal") == "Ferry's own topic"


@pytest.mark.parametrize(
    ("include", "exclude", "name", "reason"),
    [
        (["a", "b.*"], [], "bcd", None),
        (["a", "b.*"], [], "ab", "not in topics"),
        ([".*"], ["b"], "b", "in topics.exclude"),
        ([".*"], ["b"], "bb", None),
        ([], [], "b", "not in topics"),
        (["a|b"], [], "b", None),
        (["[a-c]+\\.x"], [], "abc.x", None),
        (["a{2,3}+"], [], "aaa", None),
    ],
)
def test_lists_of_expressions_match_whole_names(include: list[str], exclude: list[str], name: str, reason: str | None) -> None:
    assert DefaultTopicFilter(include, exclude).why_not(name) == reason


@pytest.mark.parametrize("element", ["\\p{Lu}.*", "a\\Z", "\\Qa.b\\E", "(?i)abc", "[a-z&&[^b]]", "[a[b]]", "(?<name>a)", "\\h", "\\07"])
def test_what_python_reads_differently_is_refused(element: str) -> None:
    with pytest.raises(ConfigError, match="topics"):
        java_pattern([element], "topics")


def test_an_escaped_backslash_is_no_class() -> None:
    pattern = java_pattern(["a\\\\p"], "topics")
    assert pattern is not None
    assert pattern.fullmatch("a\\p")
