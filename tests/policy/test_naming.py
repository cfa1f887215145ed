"""Names as MirrorMaker 2's policies make and read them, and internal topics that no setting lets through."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from ferry.config import load_config
from ferry.policy.naming import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    is_ferry_topic,
    is_heartbeats,
    ledger_topic,
    runs_topic,
    state_topic,
)

pytestmark = pytest.mark.unit

DEFAULT = DefaultReplicationPolicy()
LoadPolicy = Callable[..., ReplicationPolicy]

CLUSTERS = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


@pytest.fixture
def load_policy(tmp_path: Path) -> LoadPolicy:
    def load(*lines: str) -> ReplicationPolicy:
        path = tmp_path / "mm2.properties"
        path.write_text(CLUSTERS + "\n".join(lines), encoding="latin-1")
        return load_config(path).flow("A->B").policy

    return load


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original", "internal"),
    [
        ("t", None, None, "t", False),
        ("a.t", "a", "t", "t", False),
        ("a..t", "a", ".t", "t", False),
        (".t", "", "t", "t", True),
        ("t.", None, None, "t.", False),
        ("a.b.", "a", "b.", "b.", False),
        (".", None, None, ".", True),
        ("..", None, None, "..", True),
        ("a.b.c.heartbeats", "a", "b.c.heartbeats", "heartbeats", False),
        ("foo.bar", "foo", "bar", "bar", False),
        ("__t", None, None, "__t", True),
        ("mm2-offsets.A.internal", "mm2-offsets", "A.internal", "internal", True),
        ("t.internal", "t", "internal", "internal", False),
        ("a.checkpoints.internal", "a", "checkpoints.internal", "internal", True),
    ],
)
def test_the_default_policy(topic: str, source: str | None, upstream: str | None, original: str, internal: bool) -> None:
    assert DEFAULT.topic_source(topic) == source
    assert DEFAULT.upstream_topic(topic) == upstream
    assert DEFAULT.original_topic(topic) == original
    assert DEFAULT.is_internal_topic(topic) is internal
    assert DEFAULT.is_heartbeats_topic(topic) is (original == "heartbeats")


@pytest.mark.parametrize(
    ("lines", "checkpoints", "offset_syncs", "remote"),
    [
        ([], "A.checkpoints.internal", "mm2-offset-syncs.B.internal", "A.t"),
        (["replication.policy.separator = _"], "A_checkpoints_internal", "mm2-offset-syncs_B_internal", "A_t"),
        (
            ["A->B.replication.policy.separator = -x-", "replication.policy.internal.topic.separator.enabled = false"],
            "A.checkpoints.internal",
            "mm2-offset-syncs.B.internal",
            "A-x-t",
        ),
        # Read only where a separator is given.
        (["replication.policy.internal.topic.separator.enabled = false"], "A.checkpoints.internal", "mm2-offset-syncs.B.internal", "A.t"),
        (
            ["replication.policy.class = IdentityReplicationPolicy", "replication.policy.separator = _"],
            "A_checkpoints_internal",
            "mm2-offset-syncs_B_internal",
            "t",
        ),
    ],
)
def test_separators(load_policy: LoadPolicy, lines: list[str], checkpoints: str, offset_syncs: str, remote: str) -> None:
    policy = load_policy(*lines)
    assert policy.checkpoints_topic("A") == checkpoints
    assert policy.offset_syncs_topic("B") == offset_syncs
    assert policy.format_remote_topic("A", "t") == remote
    assert policy.heartbeats_topic() == "heartbeats"
    assert policy.is_checkpoints_topic(checkpoints)
    assert policy.is_mm2_internal_topic(offset_syncs)
    assert policy.is_internal_topic(checkpoints)
    assert not policy.is_checkpoints_topic("checkpoints.internal")
    assert not policy.is_mm2_internal_topic("__t")


@pytest.mark.parametrize(
    "name",
    [
        "IdentityReplicationPolicy",
        "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "LegacyReplicationPolicy",
        "org.apache.kafka.mirror.LegacyReplicationPolicy",
        "org.apache.kafka.connect.mirror.LegacyReplicationPolicy",
    ],
)
def test_the_identity_policy_renames_heartbeats_only(load_policy: LoadPolicy, name: str) -> None:
    policy = load_policy(f"replication.policy.class = {name}")
    assert policy == IdentityReplicationPolicy(source_alias="A")
    assert not policy.renames
    assert policy.format_remote_topic("A", "t") == "t"
    assert (policy.topic_source("t"), policy.upstream_topic("t"), policy.original_topic("t")) == ("A", "t", "t")
    assert policy.format_remote_topic("A", "myheartbeats") == "A.myheartbeats"
    assert (policy.topic_source("C.heartbeats"), policy.upstream_topic("C.heartbeats")) == ("C", "heartbeats")
    assert policy.is_heartbeats_topic("D.C.heartbeats")
    assert not policy.is_heartbeats_topic("C.t")


def test_an_identity_policy_without_an_alias_knows_no_source() -> None:
    policy = IdentityReplicationPolicy()
    assert (policy.topic_source("t"), policy.upstream_topic("t")) == (None, "t")


POLICIES = ("DefaultReplicationPolicy", "IdentityReplicationPolicy")
SEPARATORS = (".", "_", "-", "__", "x")
INTERNAL = (
    "mm2-offsets.A.internal",
    "mm2-configs.A.internal",
    "mm2-status.A.internal",
    "mm2-offset-syncs.B.internal",
    "mm2-offset-syncs_B_internal",
    "mm2-offset-syncs-B-internal",
    "mm2-anything.internal",
    "A.checkpoints.internal",
    "C.A.checkpoints.internal",
    "__consumer_offsets",
    "__transaction_state",
    ledger_topic("A"),
    state_topic("C"),
    runs_topic("A"),
    "mm2-ferry-anything",
)


@pytest.mark.parametrize(("policy", "separator", "internal"), list(product(POLICIES, SEPARATORS, ("true", "false"))))
def test_internal_topics_are_never_copied(tmp_path: Path, policy: str, separator: str, internal: str) -> None:
    """With `_`, MM2's policy takes mm2-offsets.A.internal for a user's topic; only the default topics.exclude keeps it back."""
    lines = [
        "topics = .*",
        "topics.exclude =",
        f"replication.policy.class = {policy}",
        f"replication.policy.separator = {separator}",
        f"replication.policy.internal.topic.separator.enabled = {internal}",
    ]
    path = tmp_path / "mm2.properties"
    path.write_text(CLUSTERS + "\n".join(lines), encoding="latin-1")
    own = (f"mm2-offset-syncs{separator}B{separator}internal", f"A{separator}checkpoints{separator}internal")
    users = ("orders", "mm2-offsets-of-mine", "internal", "my-internal")
    selection = load_config(path).flow("A->B").topic_rules.select((*INTERNAL, *own, *users))
    assert {entry.topic for entry in selection.skipped} >= {*INTERNAL, *own}
    assert "orders" in dict(selection.selected)
    if separator in {".", "_"}:
        assert dict(selection.selected).keys() == set(users)


def test_ferry_topics() -> None:
    assert is_ferry_topic(ledger_topic("A"))
    assert not is_ferry_topic("mm2-offsets.A.internal")


class Backwards(ReplicationPolicy):
    """What a user has to write, and no more."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}@{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        return topic.rpartition("@")[2] if "@" in topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition("@")[0] if "@" in topic else None


def test_what_a_policy_need_not_override() -> None:
    policy = Backwards()
    assert policy.original_topic("t@a@b") == "t"
    assert policy.is_heartbeats_topic("heartbeats@a@b")
    assert (policy.checkpoints_topic("a"), policy.offset_syncs_topic("b")) == ("a.checkpoints.internal", "mm2-offset-syncs.b.internal")
    assert policy.is_checkpoints_topic("a.checkpoints.internal")
    assert policy.is_internal_topic("mm2-x.internal")
    assert not policy.is_internal_topic("t@a")


def test_a_policy_with_a_circle_of_names_ends() -> None:
    class Round(Backwards):
        def upstream_topic(self, topic: str) -> str | None:
            return topic[::-1] + "!"

    assert Round().original_topic("ab").endswith("!")


@pytest.mark.parametrize(
    ("topic", "beats"),
    [
        ("heartbeats", True),
        ("A.heartbeats", True),
        ("C.A.heartbeats", True),
        ("eu.west.heartbeats", True),
        ("eu.west.A.heartbeats", True),
        ("eu.heartbeats", True),
        ("x.heartbeats", False),
        ("A.x.heartbeats", False),
        ("x.A.heartbeats", False),
        ("west.heartbeats", False),
        (".heartbeats", False),
        ("A.heartbeats.x", False),
        ("t", False),
    ],
)
@pytest.mark.parametrize("lines", [[], ["replication.policy.class = IdentityReplicationPolicy"]])
def test_only_what_came_over_clusters_of_the_file_holds_heartbeats(tmp_path: Path, lines: list[str], topic: str, beats: bool) -> None:
    """MM2's clients, who know no file, take every one of these names for heartbeats if it ends like one."""
    path = tmp_path / "mm2.properties"
    servers = "\n".join(f"{alias}.bootstrap.servers = {number}:1" for number, alias in enumerate(("A", "B", "C", "eu", "eu.west")))
    path.write_text("\n".join(["clusters = A, B, C, eu, eu.west", servers, "A->B.enabled = true", *lines]), encoding="latin-1")
    flow = load_config(path).flow("A->B")
    assert flow.is_heartbeats(topic) is beats
    assert flow.policy.is_heartbeats_topic(topic) is topic.endswith("heartbeats")


def test_heartbeats_of_a_custom_policy() -> None:
    names = [f"heartbeats{hops}" for hops in ("", "@a", "@a@b", "@x", "@a@x")]
    assert [is_heartbeats(Backwards(), {"a", "b"}, ".", name) for name in names] == [True, True, True, False, False]
