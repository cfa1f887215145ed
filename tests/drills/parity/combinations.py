"""Combinations of properties under which MirrorMaker 2 and Ferry must leave the same behind.

Each is one flow of one file: `properties` hold for it alone. Topics and aliases of a combination bear its mark, so that all of them share
three clusters and one MM2 process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


@dataclass(frozen=True)
class Combination:
    """One flow. `{mark}` in values becomes the combination's mark. `different`: names of documented differences, see KNOWN."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    different: frozenset[str] = frozenset()
    quick: bool = False

    @property
    def topics(self) -> str:
        """What the flow copies: by default everything that bears its mark."""
        return self.properties.get("topics", "{mark}-.*")


def combination(name: str, *different: str, quick: bool = False, **properties: str) -> Combination:
    """Underscores in names stand for dots, double ones for dashes."""
    named = {key.replace("__", "-").replace("_", "."): value for key, value in properties.items()}
    return Combination(name, named, frozenset(different), quick)


# What Ferry does otherwise on purpose (docs/from-mirrormaker.md), by name.
KNOWN = {
    "refreshes": "each run lists topics, whatever refresh.topics.enabled says",
    "min-insync-replicas": "MM2 sets min.insync.replicas=1 where nobody set it, from clusters that 4.1 or newer formatted",
    "no-heartbeats-topic": "MM2 creates the heartbeats topic even where emit.heartbeats.enabled=false",
}

COMBINATIONS = (
    combination("defaults", quick=True),
    combination("defaults-of-the-source", quick=True, use_defaults_from="source"),
    combination("exclude-nothing", "min-insync-replicas", config_properties_exclude=""),
    combination("exclude-retention", "min-insync-replicas", config_properties_exclude="retention.*, max\\.message\\.bytes"),
    combination("exclude-retention-defaults-of-the-source", config_properties_exclude="retention.*", use_defaults_from="source"),
    combination("no-config-sync", sync_topic_configs_enabled="false"),
    combination("rare-config-sync", sync_topic_configs_interval_seconds="3600"),
    combination("no-acl-sync", sync_topic_acls_enabled="false"),
    combination("rare-acl-sync", sync_topic_acls_interval_seconds="3600"),
    combination("neither", sync_topic_acls_enabled="false", sync_topic_configs_enabled="false"),
    combination("identity", quick=True, replication_policy_class=POLICY),
    combination("identity-defaults-of-the-source", replication_policy_class=POLICY, use_defaults_from="source"),
    combination("identity-underscore", replication_policy_class=POLICY, replication_policy_separator="_"),
    combination("underscore", quick=True, replication_policy_separator="_"),
    combination("underscore-internal-dot", replication_policy_separator="_", replication_policy_internal_topic_separator_enabled="false"),
    combination("dash", replication_policy_separator="-"),
    combination("long-separator", replication_policy_separator="__"),
    combination("internal-flag-without-separator", replication_policy_internal_topic_separator_enabled="false"),
    combination("one-topic", topics="{mark}-orders"),
    combination("two-expressions", topics="{mark}-ord[a-e]rs, {mark}-(plain|later)"),
    combination("nothing", topics=""),
    combination("exclude-topics", topics_exclude="{mark}-pl.*"),
    combination("exclude-no-topic", quick=True, topics_exclude=""),
    combination("no-heartbeats-copied", heartbeats_replication_enabled="false"),
    combination("no-refresh", "refreshes", refresh_topics_enabled="false"),
    combination("no-offset-syncs", emit_offset__syncs_enabled="false", emit_checkpoints_enabled="false"),
    combination("offset-syncs-at-the-source", offset__syncs_topic_location="source"),
    combination("every-offset-sync", offset_lag_max="0"),
    combination("group-offsets", sync_group_offsets_enabled="true", sync_group_offsets_interval_seconds="2"),
    combination("some-groups", groups="{mark}-g.*", groups_exclude="{mark}-gone"),
    combination("broker-replication-factor", replication_factor="-1"),
    combination("many-tasks", tasks_max="3"),
    combination("explicit-filters", topic_filter_class="org.apache.kafka.connect.mirror.DefaultTopicFilter"),
    combination("with-heartbeats", emit_heartbeats_enabled="true"),
)
