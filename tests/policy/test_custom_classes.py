"""Policies and filters of a user's own: found, configured, guarded, and refused with the key and the line."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from ferry.config import Flow, load_config
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

CLUSTERS = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
HERE = "tests.policy.policies:"
Load = Callable[..., Flow]
Problem = Callable[..., str]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def from_lines(*lines: str) -> Flow:
        path = tmp_path / "mm2.properties"
        path.write_text(CLUSTERS + "\n".join(lines), encoding="latin-1")
        return load_config(path).flow("A->B")

    return from_lines


@pytest.fixture
def problem(load: Load, tmp_path: Path) -> Problem:
    def from_lines(*lines: str) -> str:
        with pytest.raises(ConfigError) as caught:
            load(*lines)
        return str(caught.value).removeprefix(f"{tmp_path / 'mm2.properties'}:")

    return from_lines


def test_a_custom_policy(load: Load) -> None:
    """Its own properties come from the top level or the flow, as MM2 hands on all that begins with replication.policy."""
    lines = (f"replication.policy.class = {HERE}Suffix", "replication.policy.suffix.mark = -top-", "A->B.tasks.max = 3", "topics = o.*")
    policy = load(*lines).policy
    assert policy.format_remote_topic("A", "t") == "t-top-A"
    assert (policy.topic_source("t-top-A"), policy.original_topic("t-top-A-top-C")) == ("A", "t")
    assert policy.renames
    assert policy.is_heartbeats_topic("heartbeats-top-A")
    assert policy.checkpoints_topic("A") == "A.checkpoints.internal"
    assert policy.offset_syncs_topic("A") == "mm2-offset-syncs.A.internal"
    flow = load(*lines, "A->B.replication.policy.suffix.mark = -flow-")
    assert flow.policy.format_remote_topic("A", "t") == "t-flow-A"
    given = flow.class_properties
    assert (given["source.cluster.alias"], given["target.cluster.alias"], given["tasks.max"], given["topics"]) == ("A", "B", "3", "o.*")
    assert given["replication.policy.separator"] == "."
    assert not {name for name in given if "bootstrap" in name}


def test_an_executor_makes_its_own_policy_from_the_flow(load: Load) -> None:
    flow = pickle.loads(pickle.dumps(load(f"A->B.replication.policy.class = {HERE}Suffix")))  # noqa: S301 - made here
    assert flow.policy.format_remote_topic("A", "t") == "t-from-A"


def test_selection_asks_the_policy(load: Load) -> None:
    flow = load(f"A->B.replication.policy.class = {HERE}Suffix")
    names = ["t", "t-from-B", "t-from-B-from-C", "t-from-C", "mm2-offsets.A.internal", "heartbeats"]
    selection = flow.topic_rules.select(names)
    assert dict(selection.selected) == {"t": "t-from-A", "t-from-C": "t-from-C-from-A", "heartbeats": "heartbeats-from-A"}


def test_a_class_without_the_base_gets_the_rest_of_it(load: Load) -> None:
    policy = load(f"A->B.replication.policy.class = {HERE}Loose").policy
    assert policy.format_remote_topic("A", "t") == "A-t"
    assert policy.checkpoints_topic("A") == "A.checkpoints.internal"
    assert not policy.is_internal_topic("A-t")


def test_a_policy_that_keeps_names_says_so(load: Load) -> None:
    flow = load(f"A->B.replication.policy.class = {HERE}SaysSame")
    assert not flow.policy.renames
    assert dict(flow.topic_rules.select(["orders"]).selected) == {"orders": "orders"}


def test_custom_filters(load: Load) -> None:
    flow = load(
        f"topic.filter.class = {HERE}OnlyShort",
        f"group.filter.class = {HERE}OnlyShort",
        f"A->B.config.property.filter.class = {HERE}OnlyShort",
        "A->B.topic.filter.most = 2",
        "topics = nothing",
    )
    topics = flow.topic_filter
    assert [topics.why_not(name) for name in ("ab", "abc")] == [None, f"left out by {HERE}OnlyShort"]
    groups = flow.group_filter
    assert [groups.why_not(name) for name in ("ab", "abc")] == [None, f"left out by {HERE}OnlyShort"]
    configs = flow.config_property_filter
    assert configs.why_not("retention.bytes") is None
    assert not configs.should_replicate_source_default("retention.bytes")
    assert configs.why_not("cleanup.policy") == f"left out by {HERE}OnlyShort"
    assert dict(flow.topic_rules.select(["ab", "abc"]).selected) == {"ab": "A.ab"}


@pytest.mark.parametrize(
    ("key", "name", "told"),
    [
        ("A->B.replication.policy.class", "tests.policy.nowhere:X", "cannot be imported (ModuleNotFoundError: No module named"),
        ("replication.policy.class", f"{HERE}Nothing", "cannot be imported (AttributeError: "),
        ("replication.policy.class", f"{HERE}not_a_class", "is no class"),
        ("replication.policy.class", f"{HERE}Unfinished", "lacks topic_source"),
        ("replication.policy.class", f"{HERE}OnlyShort", "lacks format_remote_topic, topic_source, upstream_topic"),
        ("replication.policy.class", f"{HERE}Explodes", "cannot be made and configured: ValueError: no licence"),
        ("replication.policy.class", f"{HERE}ExplodesConfigured", "cannot be made and configured: KeyError: 'A'"),
        ("replication.policy.class", f"{HERE}GivesNumbers", "format_remote_topic('A', 'orders') gave 7: it must give str"),
        ("replication.policy.class", f"{HERE}FailsOnOrders", "topic_source('orders') raised IndexError: orders"),
        ("replication.policy.class", f"{HERE}Same", "keeps the name orders"),
        ("topic.filter.class", f"{HERE}Suffix", "lacks should_replicate_topic"),
        ("topic.filter.class", f"{HERE}NoTruth", "should_replicate_topic('orders') gave 'orders': it must give bool"),
        ("A->B.group.filter.class", f"{HERE}Suffix", "lacks should_replicate_group"),
        (
            "config.property.filter.class",
            f"{HERE}Suffix",
            "lacks should_replicate_config_property, should_replicate_source_default",
        ),
        ("replication.policy.class", "com.example.Policy", "(write it in Python: package.module:Class), not 'com.example.Policy'"),
        (
            "group.filter.class",
            "com.example.Filter",
            "must be DefaultGroupFilter, or a class of your own (write it in Python: ",
        ),
        ("topic.filter.class", "a b:C", "(write it in Python: package.module:Class)"),
    ],
)
def test_what_is_refused(problem: Problem, key: str, name: str, told: str) -> None:
    found = problem(f"{key} = {name}")
    assert found.startswith(f"5: {key}: ")
    assert told in found
    assert "\n" not in found


def test_custom_properties_need_a_custom_class(problem: Problem, load: Load) -> None:
    """Otherwise a slip of the pen in MM2's own names would pass."""
    assert problem("replication.policy.seperator = _").endswith("is not a known property; did you mean replication.policy.separator?")
    assert "is not a known property" in problem(f"replication.policy.class = {HERE}Suffix", "A->B.topic.filter.most = 2")
    assert load(f"replication.policy.class = {HERE}Suffix", "replication.policy.other = x")


def test_custom_properties_of_filters_at_the_top_level_are_ignored_as_in_mm2(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(f"{CLUSTERS}topic.filter.class = {HERE}OnlyShort\ntopic.filter.most = 2\n", encoding="latin-1")
    config = load_config(path)
    assert config.warnings == (
        f"{path}:6: topic.filter.most: has no effect: MM2 drops it at the top level: write <source>-><target>.topic.filter.most",
    )
    assert config.flows[0].topic_filter.why_not("abcde") is None
