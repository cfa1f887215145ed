"""Reads one flow from the properties of a file. Also checks properties that contradict each other.

It refuses what MM2 refuses (MirrorSourceConfig.validate, MirrorSourceConnector.validate), and what Ferry cannot do as MM2 does it.
MirrorCheckpointConfig.validate refuses only the checkpoint connector: MM2's dedicated mode logs that, and runs the other connectors. So
Ferry switches the work of that connector off, and refuses nothing.

Message handlers and assignment listeners are imported here, so that a name that leads nowhere is a problem of the file and not of a run.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from ferry.config.cluster import Cluster
from ferry.config.connector_file import HEARTBEATS, IDENTITY_CLASS
from ferry.config.flow import Flow
from ferry.config.keys import CLASS_KEYS, TOP_LEVEL_CLASS_KEYS, is_custom_key
from ferry.config.problems import Problems
from ferry.config.properties import Entry
from ferry.config.registry import FLOW_PROPERTIES
from ferry.config.registry.flows import MM2
from ferry.config.registry.kinds import REPLICATION_FACTOR
from ferry.config.registry.property import Effect
from ferry.config.settings import CALLBACK, CALLBACK_ARGS, HANDLER, HANDLER_ARGS, LISTENER, LISTENER_ARGS, REROUTE, REWRITE, read_settings
from ferry.config.sources import ClientRole, Pair, Setting, Sources
from ferry.errors import ConfigError
from ferry.handling.loading import check_handler, check_listener
from ferry.policy.custom_classes import is_custom

_REPLICATION_CLASS = "replication.policy.class"
_SEPARATOR = "replication.policy.separator"
_SCHEMAS = "sync.schemas.enabled"
_EMIT_SYNCS = "emit.offset-syncs.enabled"


@dataclass(frozen=True)
class FlowReader:
    """Reads the properties of one pair of clusters. For a bad value, which was reported before, it reads the default."""

    sources: Sources
    pair: Pair
    problems: Problems

    def value(self, name: str) -> Any:
        """The effective value, parsed by its kind; None without value and default."""
        known = FLOW_PROPERTIES[name]
        entry = self._entry(name)
        for text in (entry.value if entry else None, known.default):
            if text is not None:
                with suppress(ValueError):
                    return known.kind.parse(text)
        return None

    @property
    def enabled(self) -> bool:
        """Whether MM2 would copy: a herder is started for the pair, and its connectors are enabled.

        MirrorMakerConfig.clusterPairs reads two flags of the pair by Boolean.parseBoolean, for which `true ` (trailing blank) is false. But
        heartbeats are on by default, so the pair gets its connectors anyway. The connectors trim the value of `enabled`.
        """
        own = self.sources.entries.get(f"{self.pair.name}.enabled")
        heartbeats = self._entry(HEARTBEATS)
        started = (own is not None and _parse_boolean(own.value)) or heartbeats is None or _parse_boolean(heartbeats.value)
        return started and bool(self.value("enabled"))

    def read(self, source: Cluster, target: Cluster) -> Flow:
        """The flow. Reports problems that concern several properties at once."""
        separator_given = self._entry(_SEPARATOR) is not None
        self._check_exactly_once(source.of_role(ClientRole.CONSUMER).get("isolation.level"))
        self._check_offset_syncs()
        self._check_group_offsets()
        self._check_schemas(source, target)
        self._check_handling()
        self._check_callback_arguments()
        self._check_aliases()
        flow: Flow = read_settings(
            Flow,
            self.value,
            name=self.pair.name,
            source=source,
            target=target,
            replication_policy_class=self._policy_class(),
            # DefaultReplicationPolicy.configure looks at this flag only where a separator is given.
            internal_separator_enabled=not separator_given or self.value("replication.policy.internal.topic.separator.enabled"),
            start=self._start(source),
            reverse_heartbeat=self._reverse_heartbeat(),
            replicas_given=frozenset(
                key for key, known in FLOW_PROPERTIES.items() if known.kind is REPLICATION_FACTOR and self._entry(key)
            ),
            class_properties=self._class_properties(),
        )
        flow = replace(flow, separator=self._separator(flow.separator))
        self._check_classes(flow)
        return flow

    def _entry(self, name: str) -> Entry | None:
        return self.sources.of_flow(self.pair, name)

    def _reverse_heartbeat(self) -> Literal["off", "default", "asked"]:
        """MirrorMakerConfig.clusterPairs starts a heartbeat connector for every pair that does not switch it off."""
        reverse = Pair(self.pair.target, self.pair.source)
        entry = self.sources.of_flow(reverse, HEARTBEATS)
        if FlowReader(self.sources, reverse, self.problems).enabled or (entry is not None and not _parse_boolean(entry.value)):
            return "off"
        return "asked" if entry is not None and entry.key.startswith(reverse.name) else "default"

    def _policy_class(self) -> str:
        name = str(self.value(_REPLICATION_CLASS))
        if is_custom(name):
            return name
        # The kind gives the simple name; Java's full name is the one that MM2 and its clients use. All other classes that the kind knows
        # keep the names of topics.
        return f"{MM2}{name}" if name == "DefaultReplicationPolicy" else IDENTITY_CLASS

    def _separator(self, separator: str) -> str:
        """The separator; an empty one is a problem. MM2 accepts it, and then does not recognise its own remote topics."""
        entry = self._entry(_SEPARATOR)
        if separator or entry is None:
            return separator
        if self._policy_class() == IDENTITY_CLASS:
            self.problems.warn(
                "is empty. Topics keep their names in any case, and in the names of internal topics Ferry writes a dot", entry
            )
        else:
            self.problems.add(
                "is empty, so MM2 does not recognise the remote topics that it made. If topics must keep their names, write "
                "replication.policy.class=IdentityReplicationPolicy instead; otherwise remove the key, which means a dot",
                entry,
            )
        return "."

    def _class_properties(self) -> dict[str, str]:
        """The properties with which MM2 configures its plug-ins: the flow's, the aliases, and those that only plug-ins know."""
        result = {}
        for name, known in FLOW_PROPERTIES.items():
            entry = self._entry(name)
            text = entry.value.strip() if entry else known.default
            if text is not None and known.effect is not Effect.REFUSED:
                result[name] = text
        result |= {"source.cluster.alias": self.pair.source, "target.cluster.alias": self.pair.target}
        flow = f"{self.pair.name}."
        for key in sorted(self.sources.entries, key=lambda key: key.startswith(flow)):  # the flow's own win
            name = key.removeprefix(flow)
            if is_custom_key(name, TOP_LEVEL_CLASS_KEYS if key == name else CLASS_KEYS):
                result[name] = self.sources.entries[key].value.strip()
        return result

    def _check_aliases(self) -> None:
        """MM2 lets these keys replace the aliases of `clusters` (MirrorMakerConfig.connectorBaseConfig), also in names of topics."""
        for side, alias in (("source", self.pair.source), ("target", self.pair.target)):
            entry = self._entry(f"{side}.cluster.alias")
            if entry is None or entry.value.strip() == alias:
                continue
            told = entry.value.strip() or "nothing"
            # The alias of the target is in no name of a remote topic, and an empty one names no cluster.
            if side == "target" or not entry.value.strip() or self._policy_class() == IDENTITY_CLASS:
                self.problems.warn(f"says {told}, and clusters says {alias}: Ferry takes {alias}", entry)
            else:
                what = f"says {told}, and clusters says {alias}: MM2 would write {told} into the names of topics. Remove this key, or"
                mend = "write replication.policy.class=IdentityReplicationPolicy to keep the names of topics"
                self.problems.add(f"{what} {mend}", entry)

    def _check_exactly_once(self, isolation: Setting | None) -> None:
        required = self._entry("exactly.once.support")
        if required is None or self.value("exactly.once.support") != "required":
            return
        if (off := self._entry("transaction.producer")) and not self.value("transaction.producer"):
            self.problems.add(f"is false, but {required.key} is required: change one", off)
        if isolation is None or isolation.value.reveal().strip().lower() != "read_committed":
            self.problems.add(
                "is required, which MM2 refuses without isolation.level=read_committed of the source's consumer: add "
                "<source>.consumer.isolation.level=read_committed, or remove this key (Ferry reads committed records in any case)",
                required,
            )

    def _check_offset_syncs(self) -> None:
        emit = self._entry(_EMIT_SYNCS)
        if emit is None or self.value(_EMIT_SYNCS):
            return
        for name in ("offset-syncs.topic.location", "offset-syncs.topic.replication.factor"):
            if other := self._entry(name):
                self.problems.add(f"is false, but {other.key} is set, which MM2 refuses: remove one", emit)
        if self.value("emit.checkpoints.enabled"):
            self.problems.warn(
                "switches offset syncs off. MM2 then writes no checkpoints either. Ferry still writes them, because it needs no offset "
                "syncs for them: emit.checkpoints.enabled=false switches them off",
                emit,
            )

    def _check_group_offsets(self) -> None:
        groups = self._entry("sync.group.offsets.enabled")
        if groups is not None and self.value("sync.group.offsets.enabled") and not self.value("emit.checkpoints.enabled"):
            self.problems.warn(
                "is true without checkpoints. MM2 then syncs no group offsets. Ferry syncs them, because it needs no checkpoints for that",
                groups,
            )

    def _check_schemas(self, *sides: Cluster) -> None:
        without = [side.alias for side in sides if not side.has_schema_registry]
        wanted = self._entry(_SCHEMAS)
        if without and wanted is not None and wanted.key.startswith(self.pair.name) and self.value(_SCHEMAS):
            self.problems.add(f"is true, but {' and '.join(f'{alias}.schema.registry.url' for alias in without)} is not set", wanted)

        rewrites = self._entry(REWRITE)
        if rewrites is not None and self.value(REWRITE):
            if without:
                self.problems.add(f"needs the schema registries of both clusters: {without[0]}.schema.registry.url is not set", rewrites)
            if len(self.value("sync.schemas.contexts")) > 1:
                self.problems.add("needs one context in sync.schemas.contexts: a record does not say of which its id is", rewrites)

    def _check_handling(self) -> None:
        for key, args_key, check in ((HANDLER, HANDLER_ARGS, check_handler), (LISTENER, LISTENER_ARGS, check_listener)):
            found, args, name = self._entry(key), self._entry(args_key), self.value(key)
            if name is not None and found is not None:
                try:
                    check(name, self.value(args_key))
                except ConfigError as problem:
                    self.problems.add(str(problem), found)
            if name is None and args is not None:
                self.problems.warn(f"has no effect without {key}", args)
        reroute, names = self._entry(REROUTE), self.value(REROUTE)
        if reroute is not None and names and self.value(HANDLER) is None:
            self.problems.warn(f"has no effect without {HANDLER}", reroute)
        if reroute is not None and {"true", "false"} & {name.lower() for name in names}:
            self.problems.add("names the topics of the target that the handler may choose; leave it out if it may choose none", reroute)
        elif reroute is not None and names and not self.value("transaction.producer"):
            self.problems.add("needs transaction.producer=true: otherwise nothing says which records such a topic has twice", reroute)

    def _check_callback_arguments(self) -> None:
        given = self._entry(CALLBACK_ARGS)
        unknown = sorted(set(self.value(CALLBACK_ARGS) or {}) - set(self.value(CALLBACK)))
        if unknown and given is not None:
            self.problems.add(f"gives arguments to {', '.join(unknown)}, which {CALLBACK} does not name", given)

    def _check_classes(self, flow: Flow) -> None:
        """Make each custom class and call it once, so that loading the file reports a bad one."""
        for key, ask in _CLASS_CHECKS.items():
            if (entry := self._entry(key)) and is_custom(str(self.value(key))):
                try:
                    ask(flow)
                except ConfigError as problem:
                    self.problems.add(str(problem), entry)

    def _start(self, source: Cluster) -> Literal["earliest", "latest"] | datetime:
        own: Literal["earliest", "latest"] | datetime | None = self.value("ferry.start")
        if own is not None:
            return own
        setting = source.of_role(ClientRole.CONSUMER).get("auto.offset.reset")
        if setting is None or (reset := setting.value.reveal().strip().lower()) == "earliest":
            return "earliest"
        if reset == "latest":
            return "latest"
        what = "must be earliest or latest. For a time write ferry.start=<ISO time>. Ferry never resets a lost position silently"
        self.problems.add(what, setting)
        return "earliest"


def _ask_policy(flow: Flow) -> None:
    policy = flow.policy
    flow.topic_rules.select(["orders"])
    for name in ("orders", policy.format_remote_topic(flow.source.alias, "orders")):
        policy.topic_source(name)
        policy.original_topic(name)
        policy.is_internal_topic(name)
        policy.is_heartbeats_topic(name)


_CLASS_CHECKS: Mapping[str, Callable[[Flow], object]] = {
    _REPLICATION_CLASS: _ask_policy,
    "topic.filter.class": lambda flow: flow.topic_filter.why_not("orders"),
    "group.filter.class": lambda flow: flow.group_filter.why_not("billing"),
    "config.property.filter.class": lambda flow: flow.config_property_filter.why_not("retention.ms"),
}


def _parse_boolean(text: str) -> bool:
    """Java's Boolean.parseBoolean: no trimming."""
    return text.lower() == "true"
