"""Which topics a flow copies: filters, heartbeats, and no loops in any topology."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ferry.config import Flow, load_config
from ferry.errors import ConfigError
from ferry.policy.filters import DefaultConfigPropertyFilter, IncludeExclude
from ferry.policy.naming import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from ferry.policy.selection import TopicRules, named

pytestmark = pytest.mark.unit

ALL = IncludeExclude("topics", [".*"], [])
DEFAULT = DefaultReplicationPolicy()
LoadFlows = Callable[..., dict[str, Flow]]


@pytest.fixture
def load_flows(tmp_path: Path) -> LoadFlows:
    """The flows of a file with clusters A to D, by name."""

    def load(*lines: str) -> dict[str, Flow]:
        path = tmp_path / "mm2.properties"
        servers = [f"{alias}.bootstrap.servers = {alias}:1" for alias in "ABCD"]
        path.write_text("\n".join(["clusters = A, B, C, D", *servers, *lines]), encoding="latin-1")
        return {flow.name: flow for flow in load_config(path).flows}

    return load


@pytest.mark.parametrize(
    ("name", "copied"),
    [
        ("t", True),
        ("B.t", False),
        ("C.B.t", False),
        ("A.t", False),
        ("C.A.t", False),
        ("C.t", True),
        ("C.D.t", True),
        ("heartbeats", True),
        ("C.heartbeats", True),
        ("B.heartbeats", False),
        ("C.B.heartbeats", False),
        ("__consumer_offsets", False),
        ("mm2-ferry-ledger.X.internal", False),
        ("mm2-ferry-anything", False),
    ],
)
def test_cycles_and_internal_topics(name: str, copied: bool) -> None:
    assert (TopicRules("A", "B", DEFAULT, ALL).why_not(name) is None) is copied


def test_identity_sees_cycles_of_heartbeats_only() -> None:
    rules = TopicRules("A", "B", IdentityReplicationPolicy(source_alias="A"), ALL)
    assert rules.why_not("B.t") is None
    assert rules.why_not("C.heartbeats") is None
    assert str(rules.why_not("B.heartbeats")).startswith("cycle")


@pytest.mark.parametrize(("replicated", "reason"), [("true", None), ("false", "not in the property topics")])
def test_heartbeats_pass_the_filter_unless_switched_off(load_flows: LoadFlows, replicated: str, reason: str | None) -> None:
    """KIP-1089; a filter that wants them copies them all the same."""
    flow = load_flows("A->B.enabled = true", "topics = orders", f"A->B.heartbeats.replication.enabled = {replicated}")["A->B"]
    found = flow.topic_rules.select(["heartbeats", "C.heartbeats", "orders", "other"])
    skipped = {entry.topic: entry.reason for entry in found.skipped}
    assert skipped.get("heartbeats") == skipped.get("C.heartbeats") == reason
    assert skipped["other"] == "not in the property topics"
    wanted = load_flows("A->B.enabled = true", "topics = .*beats", f"heartbeats.replication.enabled = {replicated}")["A->B"]
    assert dict(wanted.topic_rules.select(["heartbeats"]).selected) == {"heartbeats": "A.heartbeats"}


@pytest.mark.parametrize("policy", [DEFAULT, IdentityReplicationPolicy(source_alias="A")])
def test_ferry_topics_never_pass(policy: ReplicationPolicy) -> None:
    assert TopicRules("A", "B", policy, ALL).why_not("mm2-ferry-state.A.internal") == "Ferry's own topic"


@pytest.mark.parametrize(
    ("include", "exclude", "name", "reason"),
    [
        (["a", "b.*"], [], "bcd", None),
        (["a", "b.*"], [], "ab", "not in the property topics"),
        ([".*"], ["b"], "b", "in the property topics.exclude"),
        ([".*"], ["b"], "bb", None),
        ([], [], "b", "not in the property topics"),
        (["a|b"], [], "b", None),
        ([r"[a-c]+\.x"], [], "abc.x", None),
        (["b"], ["b"], "b", "in the property topics.exclude"),
    ],
)
def test_lists_of_expressions_match_whole_names(include: list[str], exclude: list[str], name: str, reason: str | None) -> None:
    assert IncludeExclude("topics", include, exclude).why_not(name) == reason


def test_filters_of_groups_and_configs(load_flows: LoadFlows) -> None:
    flow = load_flows("A->B.enabled = true", "groups.exclude = connect-.*, b", "A->B.use.defaults.from = source")["A->B"]
    groups = flow.group_filter
    assert [groups.why_not(name) for name in ("a", "b", "connect-x")] == [
        None,
        "in the property groups.exclude",
        "in the property groups.exclude",
    ]
    assert IncludeExclude("groups", ["a"], []).why_not("b") == "not in the property groups"
    configs = flow.config_property_filter
    assert configs.why_not("min.insync.replicas") == "in the property config.properties.exclude"
    # Broker names in MM2's default: the topic configs of nearly the same names are synced.
    assert configs.why_not("message.timestamp.after.max.ms") is None
    assert configs.should_replicate_source_default("retention.ms")
    assert not DefaultConfigPropertyFilter([], "target").should_replicate_source_default("retention.ms")
    assert DefaultConfigPropertyFilter([], "target").why_not("min.insync.replicas") is None


def copied_to(flows: Iterable[Flow], start: dict[str, set[str]], *, rounds: int = 9) -> dict[str, set[str]]:
    """Topics of every cluster after runs of all flows, again and again until nothing is new."""
    topics = {alias: set(start.get(alias, ())) for alias in "ABCD"}
    for _ in range(rounds):
        before = sum(map(len, topics.values()))
        for flow in flows:
            topics[flow.target.alias] |= {remote for _, remote in flow.topic_rules.select(topics[flow.source.alias]).selected}
        if sum(map(len, topics.values())) == before:
            return topics
    raise AssertionError("topics are copied without end")


ENABLED = "{}.enabled = true"


@pytest.mark.parametrize("separator", [".", "_", "-"])
@pytest.mark.parametrize(
    ("pairs", "start", "expected"),
    [
        pytest.param(["A->B", "B->A"], {"A": {"t"}, "B": {"t"}}, {"A": {"t", "B.t"}, "B": {"t", "A.t"}}, id="active-active"),
        pytest.param(["A->C", "B->C"], {"A": {"t"}, "B": {"t"}}, {"C": {"A.t", "B.t"}}, id="fan-in"),
        pytest.param(["A->B", "A->C"], {"A": {"t"}, "B": {"u"}}, {"A": {"t"}, "B": {"u", "A.t"}, "C": {"A.t"}}, id="fan-out"),
        pytest.param(["A->B", "B->C"], {"A": {"t"}}, {"B": {"A.t"}, "C": {"B.A.t"}}, id="chain"),
        pytest.param(["A->B", "B->C", "C->A"], {"A": {"t"}}, {"A": {"t"}, "B": {"A.t"}, "C": {"B.A.t"}}, id="ring"),
        pytest.param(
            ["A->B", "B->A", "B->C", "C->B"],
            {"A": {"t"}, "C": {"u"}},
            {"A": {"t", "B.C.u"}, "B": {"A.t", "C.u"}, "C": {"u", "B.A.t"}},
            id="line",
        ),
        # KIP-382's diamond: both ways arrive, under names of their own.
        pytest.param(["A->B", "A->C", "B->D", "C->D"], {"A": {"t"}}, {"B": {"A.t"}, "C": {"A.t"}, "D": {"B.A.t", "C.A.t"}}, id="diamond"),
        pytest.param(
            [f"{source}->{target}" for source in "ABC" for target in "ABC" if source != target],
            {"A": {"heartbeats"}},
            {"A": {"heartbeats"}, "B": {"A.heartbeats", "C.A.heartbeats"}, "C": {"A.heartbeats", "B.A.heartbeats"}},
            id="everybody",
        ),
    ],
)
def test_topologies(
    load_flows: LoadFlows, pairs: list[str], start: dict[str, set[str]], expected: dict[str, set[str]], separator: str
) -> None:
    """A name holds every cluster that it went through, so it comes to none twice, whatever the number of clusters."""
    flows = load_flows(*map(ENABLED.format, pairs), f"replication.policy.separator = {separator}")
    found = copied_to(flows.values(), start)
    for alias in "ABCD":
        assert found[alias] == {name.replace(".", separator) for name in expected.get(alias, start.get(alias, set()))}


def test_a_source_alias_in_the_name_is_a_cycle_too(load_flows: LoadFlows) -> None:
    """As of Kafka 4.4 (KAFKA-9914): the same cluster under two aliases would give A.A.A.t."""
    flow = load_flows("A->B.enabled = true")["A->B"]
    assert flow.topic_rules.select(["A.t"]).skipped == (("A.t", "cycle: its name says that it came from B or A", False),)


def test_two_topics_of_one_remote_name_are_refused(load_flows: LoadFlows) -> None:
    """KIP-382: a remote topic has one source topic. Possible with the identity policy, through heartbeats."""
    flow = load_flows("A->B.enabled = true", "replication.policy.class = IdentityReplicationPolicy")["A->B"]
    assert dict(flow.topic_rules.select(["xheartbeats", "t"]).selected) == {"t": "t", "xheartbeats": "A.xheartbeats"}
    rules = load_flows("A->B.enabled = true", "replication.policy.class = tests.policy.policies:OneName")["A->B"]
    with pytest.raises(ConfigError, match=r"calls both t and u everything: a remote topic has one source topic"):
        rules.topic_rules.select(["t", "u"])


def test_the_topics_that_a_filter_names() -> None:
    assert named(["orders", "a.b", "x|y", "pay.*", "[ab]", "(c|d)", "q\\.r"]) == {"orders", "a.b", "x", "y", "q.r"}
    assert named(()) == set()
