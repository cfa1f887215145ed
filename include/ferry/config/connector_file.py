"""A Connect-style `connector.properties`, read as the `mm2.properties` of its one flow.

Such a file configures one MirrorMaker 2 connector on a Connect cluster. Its keys are those that follow `A->B.` in mm2.properties; the
clusters' settings follow `source.cluster.`, `target.cluster.` and the role prefixes. For a client, MirrorConnectorConfig reads, from the
weakest to the strongest: `source.cluster.x` (login names), `consumer.x`, `source.consumer.x`; for the target likewise.

A connector is one part of a flow. So a file that names a connector class gives a flow that does only this part; without `connector.class`
it is a whole flow.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ferry.config.keys import ROLES, SIDES
from ferry.config.problems import Problems
from ferry.config.properties import Entry, PropertiesFile
from ferry.config.registry import CLIENT_PROPERTIES, FLOW_PROPERTIES
from ferry.config.registry.flows import MM2

SOURCE_ALIAS, TARGET_ALIAS, CLASS = "source.cluster.alias", "target.cluster.alias", "connector.class"
RENAME = "rename.topics"
HEARTBEATS = "emit.heartbeats.enabled"
IDENTITY_CLASS = f"{MM2}IdentityReplicationPolicy"
_TARGET = "target"
# KIP-382's names of keys, and the names that MM2 gave them.
_PROPOSED = {f"{side}.bootstrap.servers": f"{side}.cluster.bootstrap.servers" for side in SIDES}
_CONSUMED = frozenset({SOURCE_ALIAS, TARGET_ALIAS, CLASS, "name", RENAME, "clusters"})

# The properties of what a flow does besides copying records, by the connector that does it in MirrorMaker 2.
AROUND = {
    "heartbeat": (HEARTBEATS,),
    "checkpoint": ("emit.checkpoints.enabled", "sync.group.offsets.enabled"),
    "source": ("sync.topic.configs.enabled", "sync.topic.acls.enabled", "emit.offset-syncs.enabled", "heartbeats.replication.enabled"),
}
PARTS = {"MirrorSourceConnector": "source", "MirrorCheckpointConnector": "checkpoint", "MirrorHeartbeatConnector": "heartbeat"}


def is_connector_file(file: PropertiesFile) -> bool:
    """Whether the file is of one connector, not of a whole MirrorMaker. A connector does not read `clusters`."""
    whole = "clusters" in file.entries and not set(_PROPOSED.values()) & set(file.entries)
    return not whole and bool({SOURCE_ALIAS, CLASS} & set(file.entries))


def read_connector_file(file: PropertiesFile) -> PropertiesFile:
    """The same settings under the keys of mm2.properties; every entry keeps its own key and line. ConfigError."""
    problems = Problems(file.path)
    source, target = aliases_of(file)
    part = _part(file, problems)
    problems.raise_if_any()
    pair = f"{source.value}->{target.value}"
    entries = {"clusters": replace(source, value=f"{source.value}, {target.value}")}
    notes = list(file.notes)
    # Later entries replace earlier ones: first those of KIP-382's form, then role settings without a side, then those of one side.
    for key, entry in sorted(file.entries.items(), key=lambda item: (item[0] not in _PROPOSED, item[0].partition(".")[0] not in ROLES)):
        for place in () if key in _CONSUMED else _places(key, pair, source.value, target.value):
            entries[place] = entry
        if key in _PROPOSED:
            set_too = _PROPOSED[key] in file.entries
            told = f"has no effect: {_PROPOSED[key]} is set too" if set_too else f"is read as {_PROPOSED[key]}, which MM2 wants"
            notes.append((entry, told))
        elif key == "clusters":
            notes.append((entry, f"has no effect in the file of a connector: {SOURCE_ALIAS} and {TARGET_ALIAS} name its clusters"))
        elif _is_of_role(key):
            notes.append((entry, "has no effect: behind source.cluster. and target.cluster. MM2 reads only servers and login"))
    entries.setdefault(f"{pair}.enabled", Entry("enabled", "true", 0))
    if rename_off(file.entries):
        entries.setdefault(f"{pair}.replication.policy.class", replace(file.entries[RENAME], value=IDENTITY_CLASS))
    left_out = tuple(name for other, names in AROUND.items() if part is not None and other != part for name in names)
    for name in left_out:
        written = entries.get(f"{pair}.{name}")
        if written is not None and written.value.strip().lower() == "true":
            notes.append((written, f"has no effect in the file of a {file.entries[CLASS].value.strip()}"))
    entries[f"{target.value}->{source.value}.{HEARTBEATS}"] = Entry(HEARTBEATS, "false", 0)
    words = partial(_in_words_of_the_file, pair=pair, aliases=(source.value, target.value))
    return replace(file, entries=entries, notes=tuple(notes), copies=part in {None, "source"}, left_out=left_out, words=words)


def _is_of_role(key: str) -> bool:
    """Whether the key is a setting of one kind of client, at a place where MirrorConnectorConfig reads only settings of logins."""
    side, _, name = key.partition(".cluster.")
    return side in SIDES and name.partition(".")[0] in ROLES


def rename_off(entries: Mapping[str, Entry]) -> bool:
    """KIP-382's `rename.topics = false`: topics keep their names."""
    return RENAME in entries and entries[RENAME].value.strip().lower() == "false"


def aliases_of(file: PropertiesFile) -> tuple[Entry, Entry]:
    """The entries of the source's and the target's alias, without blanks. ConfigError."""
    problems = Problems(file.path)
    source, target = (_alias(file, key, problems) for key in (SOURCE_ALIAS, TARGET_ALIAS))
    problems.raise_if_any()
    return source, target


def _alias(file: PropertiesFile, key: str, problems: Problems) -> Entry:
    entry = file.entries.get(key)
    if entry is None and key == TARGET_ALIAS:
        return Entry(key, _TARGET, 0)  # the default of MirrorConnectorConfig
    if entry is None or not entry.value.strip():
        problems.add("is missing: name the cluster, for example A", entry, key=key)
        return Entry(key, "", 0)
    if "," in entry.value:
        problems.add("must be one alias", entry)
    other = file.entries.get(SOURCE_ALIAS)
    if key == TARGET_ALIAS and other is not None and other.value.strip() == entry.value.strip():
        problems.add(f"is the same as {SOURCE_ALIAS}: a flow must not copy a cluster to itself", entry)
    return replace(entry, value=entry.value.strip())


def _part(file: PropertiesFile, problems: Problems) -> str | None:
    entry = file.entries.get(CLASS)
    if entry is None:
        return None
    name = entry.value.strip().rpartition(".")[2]
    if name not in PARTS:
        problems.add(f"must be {', '.join(PARTS)}: Ferry runs no other connectors", entry)
    return PARTS.get(name)


def _places(key: str, pair: str, source: str, target: str) -> tuple[str, ...]:
    """The keys of mm2.properties that set what this key sets in a connector's file."""
    if key.startswith("config.providers"):
        return (key,)
    role, _, name = key.partition(".")
    if key in _PROPOSED:
        return (f"{source if role == 'source' else target}.{name}",)
    if _is_of_role(key):
        return ()
    if key in FLOW_PROPERTIES or key.startswith("producer.override."):
        return (f"{pair}.{key}",)
    if role in ROLES and name in CLIENT_PROPERTIES:
        return f"{source}.{key}", f"{target}.{key}"
    for side, alias in (("source.", source), ("target.", target)):
        rest = key.removeprefix(side)
        if rest != key and rest.partition(".")[0] in ("cluster", *ROLES):
            return (f"{alias}.{rest.removeprefix('cluster.')}",)
    return (f"{pair}.{key}",)


def _in_words_of_the_file(text: str, pair: str, aliases: tuple[str, str]) -> str:
    """`text` with keys of mm2.properties replaced by the keys of this file."""
    text = text.replace(f"{pair}.", "")
    for side, alias in zip(SIDES, aliases, strict=True):
        text = re.sub(rf"(?<![\w.-]){re.escape(alias)}\.({'|'.join(ROLES)})\.", rf"{side}.\1.", text)
        text = re.sub(rf"(?<![\w.-]){re.escape(alias)}\.(?=[a-z])(?!cluster\.)", f"{side}.cluster.", text)
    return text
