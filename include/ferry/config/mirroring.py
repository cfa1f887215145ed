"""What a flow keeps in step around the records, as settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class MirroringSettings:
    """MM2's settings of configs, ACLs, heartbeats, checkpoints and group offsets, and Ferry's own beside them.

    Intervals in seconds: a run leaves a sync out that was done less than that ago. Replication factors may be -1, the broker's default.
    `offset_lag_max` in records.
    """

    sync_topic_configs_enabled: bool = True
    sync_topic_configs_interval: int = 600
    config_property_filter_class: str = "DefaultConfigPropertyFilter"
    sync_topic_acls_enabled: bool = True
    sync_topic_acls_interval: int = 600
    heartbeats_replication_enabled: bool = True
    emit_heartbeats_enabled: bool = True
    emit_heartbeats_interval: int = 1
    heartbeats_topic_replication_factor: int = 3
    emit_checkpoints_enabled: bool = True
    emit_checkpoints_interval: int = 60
    checkpoints_topic_replication_factor: int = 3
    emit_offset_syncs_enabled: bool = True
    offset_syncs_topic_location: Literal["source", "target"] = "target"
    offset_syncs_topic_replication_factor: int = 3
    offset_lag_max: int = 100
    sync_group_offsets_enabled: bool = False
    sync_group_offsets_interval: int = 60
    groups: tuple[str, ...] = (".*",)
    groups_exclude: tuple[str, ...] = ("console-consumer-.*", "connect-.*", "__.*")
    group_filter_class: str = "DefaultGroupFilter"
    topic_filter_class: str = "DefaultTopicFilter"
    publish_source_group: str = ""


# Which property each field is read from.
PROPERTIES = {
    "sync_topic_configs_enabled": "sync.topic.configs.enabled",
    "sync_topic_configs_interval": "sync.topic.configs.interval.seconds",
    "config_property_filter_class": "config.property.filter.class",
    "sync_topic_acls_enabled": "sync.topic.acls.enabled",
    "sync_topic_acls_interval": "sync.topic.acls.interval.seconds",
    "heartbeats_replication_enabled": "heartbeats.replication.enabled",
    "emit_heartbeats_enabled": "emit.heartbeats.enabled",
    "emit_heartbeats_interval": "emit.heartbeats.interval.seconds",
    "heartbeats_topic_replication_factor": "heartbeats.topic.replication.factor",
    "emit_checkpoints_enabled": "emit.checkpoints.enabled",
    "emit_checkpoints_interval": "emit.checkpoints.interval.seconds",
    "checkpoints_topic_replication_factor": "checkpoints.topic.replication.factor",
    "emit_offset_syncs_enabled": "emit.offset-syncs.enabled",
    "offset_syncs_topic_location": "offset-syncs.topic.location",
    "offset_syncs_topic_replication_factor": "offset-syncs.topic.replication.factor",
    "offset_lag_max": "offset.lag.max",
    "sync_group_offsets_enabled": "sync.group.offsets.enabled",
    "sync_group_offsets_interval": "sync.group.offsets.interval.seconds",
    "groups": "groups",
    "groups_exclude": "groups.exclude",
    "group_filter_class": "group.filter.class",
    "topic_filter_class": "topic.filter.class",
    "publish_source_group": "ferry.publish.source.group",
}


def read_mirroring(value: Callable[[str], Any]) -> MirroringSettings:
    """The settings of one flow; `value` gives a property's effective value by its kind."""
    return MirroringSettings(**{name: value(key) for name, key in PROPERTIES.items()})
