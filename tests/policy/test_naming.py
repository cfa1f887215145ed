"""Names as MirrorMaker 2's policies make and read them."""

from __future__ import annotations

import pytest

from ferry.policy.naming import DefaultReplicationPolicy, IdentityReplicationPolicy, is_ferry_topic, ledger_topic

pytestmark = pytest.mark.unit

DEFAULT = DefaultReplicationPolicy()


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
    ],
)
def test_the_default_policy(topic: str, source: str | None, upstream: str | None, original: str, internal: bool) -> None:
    assert DEFAULT.topic_source(topic) == source
    assert DEFAULT.upstream_topic(topic) == upstream
    assert DEFAULT.original_topic(topic) == original
    assert DEFAULT.is_internal_topic(topic) is internal


def test_remote_names() -> None:
    assert DEFAULT.format_remote_topic("a", "t") == "a.t"
    assert DefaultReplicationPolicy("_").format_remote_topic("a", "t") == "a_t"
    assert DEFAULT.checkpoints_topic("a") == "a.checkpoints.internal"
    assert DEFAULT.offset_syncs_topic("b") == "mm2-offset-syncs.b.internal"
    assert DefaultReplicationPolicy("_", "_").checkpoints_topic("a") == "a_checkpoints_internal"


def test_the_identity_policy_renames_heartbeats_only() -> None:
    policy = IdentityReplicationPolicy(source_alias="a")
    assert policy.format_remote_topic("a", "t") == "t"
    assert policy.format_remote_topic("a", "myheartbeats") == "a.myheartbeats"
    assert policy.topic_source("t") == "a"
    assert policy.original_topic("t") == "t"


def test_internal_topics() -> None:
    for name in (
        "mm2-offsets.A.internal",
        "__consumer_offsets",
        "A.checkpoints.internal",
        "mm2-offset-syncs.B.internal",
        ledger_topic("A"),
    ):
        assert DEFAULT.is_internal_topic(name)
    assert is_ferry_topic(ledger_topic("A"))
    assert not is_ferry_topic("mm2-offsets.A.internal")
