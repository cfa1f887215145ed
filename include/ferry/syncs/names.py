"""Which syncs a flow has, in the order of a run, and whether its settings want them (pure: DAG files read this while they are parsed)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ferry.config import Flow


class SyncName(StrEnum):
    TOPICS = "topics"
    SCHEMAS = "schemas"
    CONFIGS = "configs"
    ACLS = "acls"
    HEARTBEAT = "heartbeat"
    OFFSET_SYNCS = "offset-syncs"
    CHECKPOINTS = "checkpoints"
    GROUPS = "groups"
    SOURCE_GROUP = "source-group"


class Sync(NamedTuple):
    """The property that switches a sync on; empty for topics, which belong to the records."""

    switch: str = ""

    @property
    def interval_key(self) -> str:
        """The property that says how often it is done; not every sync has one."""
        return f"{self.switch.removesuffix('.enabled')}.interval.seconds"

    def interval(self, flow: "Flow") -> int:
        """The interval of the sync in seconds."""
        return int(flow.setting(self.interval_key, 0))


SYNCS: Mapping[SyncName, Sync] = {
    SyncName.TOPICS: Sync(),
    SyncName.SCHEMAS: Sync("sync.schemas.enabled"),
    SyncName.CONFIGS: Sync("sync.topic.configs.enabled"),
    SyncName.ACLS: Sync("sync.topic.acls.enabled"),
    SyncName.HEARTBEAT: Sync("emit.heartbeats.enabled"),
    SyncName.OFFSET_SYNCS: Sync("emit.offset-syncs.enabled"),
    SyncName.CHECKPOINTS: Sync("emit.checkpoints.enabled"),
    SyncName.GROUPS: Sync("sync.group.offsets.enabled"),
    SyncName.SOURCE_GROUP: Sync("ferry.publish.source.group"),
}
# A run carries out these before the copy: no record shall arrive whose schema cannot be found.
BEFORE_THE_COPY = (SyncName.SCHEMAS,)
# And these after the copy. It creates and grows remote topics before the copy, so it needs no topics sync.
AFTER_THE_COPY = tuple(name for name in SyncName if name not in {SyncName.TOPICS, *BEFORE_THE_COPY})


def not_enabled(flow: "Flow", name: SyncName) -> str:
    """The setting that switches this sync off; empty when it is on."""
    sync = SYNCS[name]
    if name is SyncName.TOPICS:
        return "" if flow.copies else "the flow copies no records"
    if not flow.setting(sync.switch) and not (name is SyncName.HEARTBEAT and flow.reverse_heartbeat != "off"):
        return f"{sync.switch}=false" if sync.switch.endswith(".enabled") else f"{sync.switch} is not set"
    if name is SyncName.SCHEMAS and (without := [side.alias for side in (flow.source, flow.target) if not side.has_schema_registry]):
        return f"{without[0]}.schema.registry.url is not set"
    interval = sync.interval(flow)
    return f"{sync.interval_key}={interval}" if interval < 0 else ""
