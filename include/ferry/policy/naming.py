"""Names of remote and internal topics: the flow's replication policy, and Ferry's own names.

`policy_for` is the one place that makes a policy; records, configs, ACLs, checkpoints and groups take their names from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.errors import ConfigError
from ferry.policy.builtin_policies import DefaultReplicationPolicy, IdentityReplicationPolicy
from ferry.policy.own_classes import is_own
from ferry.policy.own_policy import OwnReplicationPolicy
from ferry.policy.replication_policy import HEARTBEATS, ReplicationPolicy

if TYPE_CHECKING:
    from ferry.config import Flow

FERRY_PREFIX = "mm2-ferry-"
FERRY_GROUPS = "__ferry-"
STATE_PREFIX, STATE_SUFFIX = f"{FERRY_PREFIX}state.", ".internal"
# Offset syncs, and what MM2's Connect workers keep: these names always have dots, whatever the policy's separator.
MM2_PREFIXES = ("mm2-offset-syncs", "mm2-offsets", "mm2-configs", "mm2-status")

__all__ = [
    "FERRY_PREFIX",
    "HEARTBEATS",
    "DefaultReplicationPolicy",
    "IdentityReplicationPolicy",
    "ReplicationPolicy",
    "is_ferry_group",
    "is_ferry_topic",
    "is_never_copied",
    "ledger_topic",
    "policy_for",
    "position_group",
    "runs_topic",
    "state_topic",
]


def policy_for(flow: Flow) -> ReplicationPolicy:
    """The flow's replication policy. ConfigError for a class that Ferry does not know, or one of a user's own that cannot be made."""
    if is_own(flow.replication_policy_class):
        return OwnReplicationPolicy(flow.replication_policy_class, flow.class_properties)
    internal = flow.separator if flow.internal_separator_enabled else "."
    match flow.replication_policy_class.rpartition(".")[2]:
        case "DefaultReplicationPolicy":
            return DefaultReplicationPolicy(flow.separator, internal)
        case "IdentityReplicationPolicy" | "LegacyReplicationPolicy":
            return IdentityReplicationPolicy(flow.separator, internal, flow.source.alias)
    raise ConfigError(
        f"flow {flow.name}: replication.policy.class {flow.replication_policy_class} is not known: use MM2's "
        "DefaultReplicationPolicy or IdentityReplicationPolicy, or write it in Python: package.module:Class"
    )


def ledger_topic(source_alias: str) -> str:
    """Ferry's ledger of what was copied from `source_alias`; lies on the target."""
    return f"{FERRY_PREFIX}ledger.{source_alias}.internal"


def state_topic(source_alias: str) -> str:
    """Heads, claims and the flow record; lies on the target."""
    return f"{STATE_PREFIX}{source_alias}{STATE_SUFFIX}"


def runs_topic(source_alias: str) -> str:
    """Run reports; lies on the target."""
    return f"{FERRY_PREFIX}runs.{source_alias}.internal"


def position_group(source_alias: str) -> str:
    """The group that holds the flow's positions on the target (KIP-656)."""
    return f"{FERRY_GROUPS}{source_alias}"


def is_ferry_group(group: str) -> bool:
    """Ferry's own groups, which no sync touches whatever its filters say."""
    return group.startswith(FERRY_GROUPS)


def is_ferry_topic(topic: str) -> bool:
    """Ferry's own topics, which no flow copies whatever its filters say."""
    return topic.startswith(FERRY_PREFIX)


def is_never_copied(topic: str, separator: str = ".") -> bool:
    """Internal topics by their structure, whatever policies and filters say.

    MM2's policy asks for the separator in front of `internal`, so with `_` it takes `mm2-offsets.A.internal` for a user's topic, and only
    `topics.exclude` keeps it from being copied. Here every such name counts, with dots or with the flow's separator, and the known ones
    with any.
    """
    ends = tuple(f"{mark}internal" for mark in {".", separator})
    checkpoints = tuple(f"{mark}checkpoints{mark}internal" for mark in {".", separator})
    known = topic.startswith(MM2_PREFIXES) and topic.endswith("internal")
    return (
        is_ferry_topic(topic)
        or known
        or topic.startswith("__")
        or topic.endswith(checkpoints)
        or (topic.startswith("mm2") and topic.endswith(ends))
    )
