"""Which syncs a flow has, in the order of a run, and whether its settings want them (pure: DAG files read this while they are parsed)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferry.config import Flow


class SyncName(StrEnum):
    """What can be synced, in the order of a run."""

    TOPICS = "topics"
    CONFIGS = "configs"
    ACLS = "acls"
    HEARTBEAT = "heartbeat"
    OFFSET_SYNCS = "offset-syncs"
    CHECKPOINTS = "checkpoints"
    GROUPS = "groups"
    SOURCE_GROUP = "source-group"


@dataclass(frozen=True)
class SyncEntry:
    """A sync's function (module:name), and the settings that say whether it is done and how often (seconds).

    `off`: which setting switches it off, where that is not `<key>.enabled=false`.
    """

    function: str
    enabled: Callable[[Flow], bool] = lambda _: True
    interval: Callable[[Flow], int] = lambda _: 0
    key: str = ""
    off: str = ""


SYNCS: Mapping[SyncName, SyncEntry] = {
    SyncName.TOPICS: SyncEntry("ferry.syncs.topics:sync_topics", lambda flow: flow.copies),
    SyncName.CONFIGS: SyncEntry(
        "ferry.syncs.configs:sync_configs",
        lambda flow: flow.mirroring.sync_topic_configs_enabled,
        lambda flow: flow.mirroring.sync_topic_configs_interval,
        "sync.topic.configs",
    ),
    SyncName.ACLS: SyncEntry(
        "ferry.syncs.acls:sync_acls",
        lambda flow: flow.mirroring.sync_topic_acls_enabled,
        lambda flow: flow.mirroring.sync_topic_acls_interval,
        "sync.topic.acls",
    ),
    SyncName.HEARTBEAT: SyncEntry(
        "ferry.syncs.heartbeats:sync_heartbeat",
        lambda flow: flow.mirroring.emit_heartbeats_enabled or flow.reverse_heartbeat != "off",
        lambda flow: flow.mirroring.emit_heartbeats_interval,
        "emit.heartbeats",
    ),
    SyncName.OFFSET_SYNCS: SyncEntry(
        "ferry.syncs.offset_syncs:sync_offset_syncs",
        lambda flow: flow.mirroring.emit_offset_syncs_enabled,
        key="emit.offset-syncs",
    ),
    SyncName.CHECKPOINTS: SyncEntry(
        "ferry.syncs.checkpoints:sync_checkpoints",
        lambda flow: flow.mirroring.emit_checkpoints_enabled,
        lambda flow: flow.mirroring.emit_checkpoints_interval,
        "emit.checkpoints",
    ),
    SyncName.GROUPS: SyncEntry(
        "ferry.syncs.group_offsets:sync_groups",
        lambda flow: flow.mirroring.sync_group_offsets_enabled,
        lambda flow: flow.mirroring.sync_group_offsets_interval,
        "sync.group.offsets",
    ),
    SyncName.SOURCE_GROUP: SyncEntry(
        "ferry.syncs.source_group:sync_source_group",
        lambda flow: bool(flow.mirroring.publish_source_group),
        key="ferry.publish.source.group",
        off="ferry.publish.source.group is not set",
    ),
}
# The copy's own preparation creates and grows topics.
AFTER_THE_COPY = tuple(name for name in SyncName if name is not SyncName.TOPICS)


def not_enabled(flow: Flow, name: SyncName) -> str:
    """The setting that switches this sync off; empty when it is on."""
    entry = SYNCS[name]
    interval = entry.interval(flow)
    if not entry.enabled(flow):
        return entry.off or f"{entry.key}.enabled=false"
    return f"{entry.key}.interval.seconds={interval}" if interval < 0 else ""
