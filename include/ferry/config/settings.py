"""Parts of a flow's settings, each field with the property that it is read from. The registry gives its kind and default."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, NamedTuple

from ferry.config.registry import FLOW_PROPERTIES

HANDLER = "ferry.message.handler"
HANDLER_ARGS = "ferry.message.handler.args"
LISTENER = "ferry.assignment.listener"
LISTENER_ARGS = "ferry.assignment.listener.args"
ABORT = "ferry.abort.on.send.failure"
REROUTE = "ferry.handler.reroute"
REWRITE = "sync.schemas.rewrite.ids.topics"
LAG_RECORDS = "ferry.alert.lag.records"
LAG_SECONDS = "ferry.alert.lag.seconds"
HEADROOM_SECONDS = "ferry.alert.headroom.seconds"
DEADLINE_SECONDS = "ferry.alert.deadline.seconds"
ASSETS_MAX = "ferry.airflow.assets.max"
CALLBACK = "ferry.alert.callback"
CALLBACK_ARGS = "ferry.alert.callback.args"
# The replication factors, for each kind of topic that Ferry creates.
REMOTE_TOPICS = "replication.factor"
OWN_TOPICS = "ferry.internal.topics.replication.factor"
HEARTBEATS = "heartbeats.topic.replication.factor"
CHECKPOINTS = "checkpoints.topic.replication.factor"
OFFSET_SYNCS = "offset-syncs.topic.replication.factor"


def read_from(key: str) -> Any:
    """A field that is read from property `key`."""
    known = FLOW_PROPERTIES[key]
    return field(default=None if known.default is None else known.kind.parse(known.default), metadata={"property": key})


def properties_of(settings: Any) -> dict[str, str]:
    """The property of each field of settings (or of a class of them) that is read from one."""
    return {entry.name: entry.metadata["property"] for entry in fields(settings) if "property" in entry.metadata}


def read_settings(settings: Any, value: Callable[[str], Any], **given: Any) -> Any:
    """An object of the class `settings`. Fields that are not `given` are read from their properties, also in settings within settings.

    `value` returns a property's effective value, parsed by its kind. If it returns None, the field keeps its default.
    """
    read = {name: value(key) for name, key in properties_of(settings).items()}
    read |= {part.name: read_settings(part.default_factory, value) for part in fields(settings) if is_dataclass(part.default_factory)}
    return settings(**{name: found for name, found in read.items() if found is not None}, **given)


@dataclass(frozen=True)
class MirroringSettings:
    """What MM2 keeps in step beside the records: configs, ACLs, heartbeats, checkpoints and group offsets.

    Intervals in seconds: a run leaves out a sync that was done less than an interval ago. Replication factors may be -1, the broker's
    default. `offset_lag_max` in records.
    """

    refresh_topics_enabled: bool = read_from("refresh.topics.enabled")
    refresh_topics_interval: int = read_from("refresh.topics.interval.seconds")
    sync_topic_configs_enabled: bool = read_from("sync.topic.configs.enabled")
    sync_topic_configs_interval: int = read_from("sync.topic.configs.interval.seconds")
    config_property_filter_class: str = read_from("config.property.filter.class")
    sync_topic_acls_enabled: bool = read_from("sync.topic.acls.enabled")
    sync_topic_acls_interval: int = read_from("sync.topic.acls.interval.seconds")
    heartbeats_replication_enabled: bool = read_from("heartbeats.replication.enabled")
    emit_heartbeats_enabled: bool = read_from("emit.heartbeats.enabled")
    emit_heartbeats_interval: int = read_from("emit.heartbeats.interval.seconds")
    heartbeats_topic_replication_factor: int = read_from("heartbeats.topic.replication.factor")
    emit_checkpoints_enabled: bool = read_from("emit.checkpoints.enabled")
    emit_checkpoints_interval: int = read_from("emit.checkpoints.interval.seconds")
    checkpoints_topic_replication_factor: int = read_from("checkpoints.topic.replication.factor")
    emit_offset_syncs_enabled: bool = read_from("emit.offset-syncs.enabled")
    offset_syncs_topic_location: Literal["source", "target"] = read_from("offset-syncs.topic.location")
    offset_syncs_topic_replication_factor: int = read_from("offset-syncs.topic.replication.factor")
    offset_lag_max: int = read_from("offset.lag.max")
    sync_group_offsets_enabled: bool = read_from("sync.group.offsets.enabled")
    sync_group_offsets_interval: int = read_from("sync.group.offsets.interval.seconds")
    groups: tuple[str, ...] = read_from("groups")
    groups_exclude: tuple[str, ...] = read_from("groups.exclude")
    groups_latest: tuple[str, ...] = read_from("ferry.groups.latest")
    group_filter_class: str = read_from("group.filter.class")
    topic_filter_class: str = read_from("topic.filter.class")
    publish_source_group: str = read_from("ferry.publish.source.group")


@dataclass(frozen=True)
class AclSettings:
    """Which ACLs are copied beside those of literal topic names, and what may be removed. The defaults are MM2's behaviour."""

    groups: bool = read_from("ferry.sync.acls.groups")
    prefixed: bool = read_from("ferry.sync.acls.prefixed")
    transactional_ids: bool = read_from("ferry.sync.acls.transactional.ids")
    write: Literal["drop", "keep"] = read_from("ferry.sync.acls.write")
    remove: bool = read_from("ferry.sync.acls.remove")
    report_only: bool = read_from("ferry.sync.acls.report.only")


@dataclass(frozen=True)
class SchemaSettings:
    """Which schemas are copied to the target's schema registry. `contexts`: (the source's, the target's)."""

    enabled: bool = read_from("sync.schemas.enabled")
    interval: int = read_from("sync.schemas.interval.seconds")
    subjects: tuple[str, ...] = read_from("sync.schemas.subjects")
    subjects_exclude: tuple[str, ...] = read_from("sync.schemas.subjects.exclude")
    contexts: tuple[tuple[str, str], ...] = read_from("sync.schemas.contexts")
    with_global: bool = read_from("sync.schemas.global")
    rewrite_topics: tuple[str, ...] = read_from(REWRITE)
    rewrite_parts: tuple[str, ...] = read_from("sync.schemas.rewrite.ids.parts")


@dataclass(frozen=True)
class HandlingSettings:
    """Message handler, assignment listener, and what becomes of refused records (KIP-3). See ferry.handling.

    Names are `package.module:Class`; None: there is none. With `args` None the class is made without arguments. `reroute`: topics of the
    target that the handler may choose.
    """

    message_handler: str | None = read_from(HANDLER)
    message_handler_args: str | None = read_from(HANDLER_ARGS)
    assignment_listener: str | None = read_from(LISTENER)
    assignment_listener_args: str | None = read_from(LISTENER_ARGS)
    abort_on_send_failure: bool = read_from(ABORT)
    reroute: tuple[str, ...] = read_from(REROUTE)


@dataclass(frozen=True)
class AlertSettings:
    """Limits of one flow; None: there is none. Lags hold for each topic (ferry.monitoring.limits), `deadline_seconds` for a whole run.

    `callbacks` are import paths (`package.module:name`), `callback_args` the keyword arguments of each, by its path. They are not imported
    here: a notifier of Airflow need not be installed where Spark's driver reads the file. Airflow imports them when it parses the DAGs
    (ferry.alerting.delivering.check_callbacks). `assets_max`: how many refreshed topics one run announces as assets.
    """

    lag_records: int | None = read_from(LAG_RECORDS)
    lag_seconds: int | None = read_from(LAG_SECONDS)
    headroom_seconds: int | None = read_from(HEADROOM_SECONDS)
    deadline_seconds: int | None = read_from(DEADLINE_SECONDS)
    on_first_failure: bool = read_from("ferry.alert.on.first.failure")
    callbacks: tuple[str, ...] = read_from(CALLBACK)
    callback_args: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict, hash=False, repr=False, metadata={"property": CALLBACK_ARGS}
    )
    assets_max: int = read_from(ASSETS_MAX)

    @property
    def has_limits(self) -> bool:
        return any(limit is not None for limit in (self.lag_records, self.lag_seconds, self.headroom_seconds))


class WantedReplicas(NamedTuple):
    """`factor`: the value of property `key` (-1: the broker's default). `given`: the file sets it; otherwise it is Ferry's default."""

    key: str
    factor: int
    given: bool

    def on(self, brokers: int, broker_default: int = 1) -> int:
        """The number to ask for in a cluster with this many brokers, including those that are down. Only a default is lowered."""
        if self.factor < 0:
            return broker_default
        return self.factor if self.given else min(self.factor, max(brokers, broker_default))
