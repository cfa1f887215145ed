"""Names of remote and internal topics: replication policies by their class, and the names of Ferry's own topics and groups (pure).

`Flow.policy` calls `replication_policy`. Records, configs, ACLs, checkpoints and groups take their names from that policy.
"""

from collections.abc import Mapping

from ferry.errors import ConfigError
from ferry.policy.custom_classes import is_custom
from ferry.policy.replication_policy import CustomReplicationPolicy, DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy

FERRY_PREFIX = "mm2-ferry-"
FERRY_GROUPS = "__ferry-"
STATE_PREFIX, STATE_SUFFIX = f"{FERRY_PREFIX}state.", ".internal"
# Offset syncs, and topics of MM2's Connect workers. These names have dots, whatever the policy's separator is.
MM2_PREFIXES = ("mm2-offset-syncs", "mm2-offsets", "mm2-configs", "mm2-status")


def replication_policy(
    name: str, source_alias: str, separator: str, *, internal_separator: bool, properties: Mapping[str, str]
) -> ReplicationPolicy:
    """The replication policy of class `name`. ConfigError for a class that Ferry does not know, or a custom one that cannot be made.

    `internal_separator`: whether internal topics have the separator too (KIP-949). `properties` configure a custom class.
    """
    if is_custom(name):
        return CustomReplicationPolicy(name, properties)
    internal = separator if internal_separator else "."
    match name.rpartition(".")[2]:
        case "DefaultReplicationPolicy":
            return DefaultReplicationPolicy(separator, internal)
        case "IdentityReplicationPolicy" | "LegacyReplicationPolicy":
            return IdentityReplicationPolicy(separator, internal, source_alias)
    raise ConfigError(
        f"replication.policy.class {name} is not known: use MM2's DefaultReplicationPolicy or IdentityReplicationPolicy, or write it in "
        "Python: package.module:Class"
    )


def ledger_topic(source_alias: str) -> str:
    """Ferry's ledger of the flow from `source_alias`; a topic on the target."""
    return f"{FERRY_PREFIX}ledger.{source_alias}.internal"


def state_topic(source_alias: str) -> str:
    """Heads, claims and the flow record; a topic on the target."""
    return f"{STATE_PREFIX}{source_alias}{STATE_SUFFIX}"


def runs_topic(source_alias: str) -> str:
    """Run reports; a topic on the target."""
    return f"{FERRY_PREFIX}runs.{source_alias}.internal"


def position_group(source_alias: str) -> str:
    """The group that holds the flow's positions on the target (KIP-656)."""
    return f"{FERRY_GROUPS}{source_alias}"


def is_ferry_group(group: str) -> bool:
    """Whether `group` is one of Ferry's own, which no sync touches, whatever its filters say."""
    return group.startswith(FERRY_GROUPS)


def is_ferry_topic(topic: str) -> bool:
    """Whether `topic` is one of Ferry's own, which no flow copies, whatever its filters say."""
    return topic.startswith(FERRY_PREFIX)


def is_never_copied(topic: str, separator: str = ".") -> bool:
    """Whether `topic` is internal by its name, whatever policies and filters say.

    MM2's policy requires its separator before `internal`. So with `_` it treats `mm2-offsets.A.internal` as a user's topic, and only
    `topics.exclude` prevents a copy. Here every such name is internal, with dots or with the flow's separator, and known names with any.
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
