"""Connectors of a Connect cluster, as JSON or properties, become the flows of one `mm2.properties`.

MM2 does the work of a flow in up to three connectors: one copies, one writes checkpoints, one writes heartbeats. Each has all settings for
itself, also those of its clients, and reads only some of them. A flow of Ferry has each setting once. So:

- a setting that only one connector reads is taken from that connector, and has no effect in another one;
- of a setting that several read, the value of the source connector counts, or its default. If another connector has another value, that
  value is lost, and a person has to decide;
- a part of the flow whose connector is missing, or stopped, is switched off.

Settings of a cluster hold for all flows with this cluster. So if two flows have different ones, they are lost too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ferry.config.connector_file import AROUND, CLASS, PARTS, RENAME, SOURCE_ALIAS, TARGET_ALIAS, aliases_of, read_connector_file
from ferry.config.connector_file import HEARTBEATS as HEARTBEATS_KEY
from ferry.config.keys import ROLES, Keys
from ferry.config.older_names import with_successors
from ferry.config.problems import Problems, located
from ferry.config.properties import Entry, PropertiesFile
from ferry.config.registry import CLIENT_PROPERTIES, FLOW_PROPERTIES, kinds
from ferry.config.registry.flows import CHECKPOINTS, HEARTBEATS, MM2
from ferry.errors import ConfigError
from ferry.imports.lined_documents import Fields, Node, Text, line_of

SOURCE, CHECKPOINT, HEARTBEAT = "source", "checkpoint", "heartbeat"
WHOLE = ""  # a connector's file without a class is a whole flow
# Keys that a connector shares with another one (MirrorCheckpointConfig, MirrorHeartbeatConfig, DefaultTopicFilter).
_OF_POLICY = frozenset(name for name in FLOW_PROPERTIES if name.startswith("replication.policy"))
_SHARED = {
    CHECKPOINT: _OF_POLICY | {"topics", "topics.exclude", "topic.filter.class", "offset-syncs.topic.location", "emit.offset-syncs.enabled"},
    HEARTBEAT: _OF_POLICY,
}
_ONLY = {known.name: CHECKPOINT for known in CHECKPOINTS} | {known.name: HEARTBEAT for known in HEARTBEATS}
_CLASSES = {part: name for name, part in PARTS.items()}
_NAMED = frozenset({SOURCE_ALIAS, TARGET_ALIAS, CLASS, "name"})
_STOPPED = frozenset({"STOPPED", "PAUSED"})
SERVERS = "bootstrap.servers"


def connectors_of(path: Path, document: Node) -> list[PropertiesFile]:
    """The connectors of a JSON document: the body of a POST or PUT, a list of such bodies, or an answer with `expand=info`."""
    match document:
        case list():
            return [one for each in document for one in connectors_of(path, each)]
        case {"config": dict() as config}:
            state = document.get("initial_state", "")
            stopped = {Text("enabled", line_of(state)): Text("false", line_of(state))} if state in _STOPPED else {}
            return [connector(path, config | stopped)]
        case dict() if document and all(isinstance(value, str) for value in document.values()):
            return [connector(path, document)]
        case dict() if bodies := _bodies(document):
            return [one for each in bodies for one in connectors_of(path, each)]
    what = 'holds no connector: it must be {"name": …, "config": {…}}, the config alone, or a list of these'
    raise ConfigError(located(path, line_of(document), "", what))


def _bodies(answer: Fields) -> list[Node]:
    """The connectors in an answer, each as the body of a POST; empty if it holds anything else."""
    found: list[Node] = [_expanded(value) for value in answer.values() if isinstance(value, dict)]
    found += [one for value in answer.values() if isinstance(value, list) for one in value]
    return found if all(isinstance(one, dict) and "config" in one for one in found) else []


def _expanded(answer: Fields) -> Fields:
    """What an answer with `expand=info` (and `expand=status`) says of one connector, as the body of a POST."""
    info, status = answer.get("info", answer), answer.get("status", {})
    state = status.get("connector", {}) if isinstance(status, dict) else {}
    if isinstance(info, dict) and isinstance(state, dict) and "state" in state:
        return {**info, "initial_state": state["state"]}
    return dict(info) if isinstance(info, dict) else {}


def connector(path: Path, config: Fields) -> PropertiesFile:
    """A connector's file with the entries of `config`. ConfigError for a value that is no text."""
    entries = {}
    for key, value in config.items():
        if not isinstance(value, str):
            raise ConfigError(located(path, key.line, key, "must be a text, a number or a boolean"))
        entries[str(key)] = Entry(str(key), str(value), key.line, path)
    return PropertiesFile(path, entries)


def is_of_mm2(file: PropertiesFile) -> bool:
    """Whether the connector is one of MirrorMaker 2's, or its file says only which clusters it connects."""
    if CLASS not in file.entries:
        return SOURCE_ALIAS in file.entries
    package, _, name = file.entries[CLASS].value.strip().rpartition(".")
    return name in PARTS and package in {"", MM2.removesuffix(".")}


@dataclass
class Joined:
    """What all connectors say, under the keys of mm2.properties."""

    entries: dict[str, Entry] = field(default_factory=dict)
    aliases: dict[str, None] = field(default_factory=dict)
    # Entries that gave `clusters` or another key its value, and this key.
    named: list[tuple[Entry, str]] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)  # What a person should know about a key.
    dropped: list[tuple[Entry, str]] = field(default_factory=list)  # Entries without effect, and why.
    # Entries that contradict others, and why they are left out.
    lost: list[tuple[Entry, str]] = field(default_factory=list)
    begun: list[Entry] = field(default_factory=list)


def joined(connectors: Iterable[PropertiesFile], found: Joined) -> Joined:
    """`found` with the connectors of any number of flows. ConfigError if one cannot be read, or if no connector of a flow copies."""
    flows: dict[tuple[str, str], dict[str, PropertiesFile]] = {}
    for one in connectors:
        source, target = aliases_of(one)
        found.aliases |= {source.value: None, target.value: None}
        parts = flows.setdefault((source.value, target.value), {})
        part = _part(one)
        if part in parts or (parts and WHOLE in {part, *parts}):
            what = f"is a second {_CLASSES.get(part, 'connector')} of {source.value}->{target.value}, and Ferry has one flow for this pair"
            raise ConfigError(located(one.path, source.line, CLASS, what))
        parts[part] = one
    _join({pair: _Flow(pair, parts, found).entries for pair, parts in flows.items()}, found)
    return found


class _Flow:
    def __init__(self, pair: tuple[str, str], parts: Mapping[str, PropertiesFile], found: Joined) -> None:
        self._pair, self._found = "->".join(pair), found
        if not {SOURCE, WHOLE} & parts.keys():
            what = f"the MirrorSourceConnector of {self._pair} is missing, and Ferry has no flow that does not copy: give its file too"
            raise ConfigError(located(next(iter(parts.values())).path, 0, "", what))
        self._stopped = {part for part in (CHECKPOINT, HEARTBEAT) if part in parts and _is_off(parts[part])}
        first = SOURCE if SOURCE in parts else WHOLE
        self.entries: dict[str, Entry] = {key: entry for key, (entry, _) in self._read(pair, first, parts[first]).items()}
        for part in (CHECKPOINT, HEARTBEAT):
            if part in parts and part not in self._stopped:
                for key, (entry, name) in self._read(pair, part, parts[part]).items():
                    self._add(part, key, name, entry)
        for part in () if first == WHOLE else self._stopped | (AROUND.keys() - parts.keys()):
            for name in AROUND[part]:
                self.entries[f"{self._pair}.{name}"] = Entry(name, "false", 0)
                state = "stopped" if part in self._stopped else "not among the files"
                found.why[f"{self._pair}.{name}"] = f"the {_CLASSES[part]} is {state}"
        for part, file in parts.items():
            self._name(part, file)

    def _read(self, pair: tuple[str, str], part: str, file: PropertiesFile) -> dict[str, tuple[Entry, str]]:
        """The entries that the connector reads, with their names in its own file; the others are dropped."""
        read = read_connector_file(file)
        self._found.begun += read.begun
        told = {(entry.line, entry.key): what for entry, what in read.notes}
        problems = Problems(file.path)
        current = with_successors(read.entries, Keys(pair), problems)
        told |= {(line, key): what for _, line, key, what in problems.warned}
        taken: dict[str, tuple[Entry, str]] = {}
        for key, entry in current.items():
            if key == "clusters" or (not key.startswith(f"{self._pair}.") and not entry.line):
                continue  # what the file of one connector says of all clusters, and of the other direction
            name = key.removeprefix(f"{self._pair}.")
            if self._reads(part, key, name):
                taken[key] = entry, name
                if (entry.line, entry.key) in told:
                    self._found.why[key] = told[entry.line, entry.key]
            else:
                self._found.dropped.append((entry, f"only a {_CLASSES[_ONLY.get(name, SOURCE)]} reads it"))
        kept = {id(entry) for entry, _ in taken.values()} | {id(entry) for entry, _ in self._found.dropped}
        gone = [entry for entry in file.entries.values() if id(entry) not in kept and entry.key not in {*_NAMED, RENAME}]
        reasons = [told.get((entry.line, entry.key), "another entry of the file replaces it") for entry in gone]
        self._found.dropped += list(zip(gone, reasons, strict=True))
        return taken

    def _reads(self, part: str, key: str, name: str) -> bool:
        """Whether the connector reads a setting. Each has clients, and nobody knows who reads an unknown one."""
        if part == WHOLE or not key.startswith(f"{self._pair}.") or name not in FLOW_PROPERTIES:
            return True
        return part == _ONLY.get(name, SOURCE) or name in _SHARED.get(part, ()) or name == "enabled"

    def _add(self, part: str, key: str, name: str, entry: Entry) -> None:
        """Add an entry of a connector that does not copy."""
        own = key.startswith(f"{self._pair}.")
        if name == "enabled":
            return  # a connector that is stopped is not here
        if own and (_ONLY.get(name) == part or name not in FLOW_PROPERTIES):  # as far as anybody knows, no other connector reads it
            self.entries.setdefault(key, entry)
            return
        first = self.entries.get(key)
        if first is not None and _same(name, first.value, entry.value):
            self._found.named.append((entry, key))
            return
        if name == "tasks.max" or (not own and not _decides(name)):
            self._found.dropped.append((entry, "a flow has one setting: that of the MirrorSourceConnector"))
            return
        default = FLOW_PROPERTIES[name].default if own and first is None else None
        if default is not None and _same(name, default, entry.value):
            self._found.named.append((entry, key))
        else:
            said = f"{_place(first)} says otherwise" if first is not None else "the MirrorSourceConnector does not set it"
            self._found.lost.append((entry, f"{said}, and a flow of Ferry has one value"))

    def _name(self, part: str, file: PropertiesFile) -> None:
        written = {key: entry for key, entry in file.entries.items() if entry.line}
        self._found.named += [(written[key], "clusters") for key in (SOURCE_ALIAS, TARGET_ALIAS) if key in written]
        self._found.named += [(written[CLASS], f"{self._pair}.enabled")] if CLASS in written else []
        self._found.dropped += [(written["name"], "a flow has no name of its own")] if "name" in written else []
        if part in self._stopped:
            self._found.dropped += [(entry, "its connector is stopped") for key, entry in written.items() if key not in _NAMED]


def _join(flows: Mapping[tuple[str, str], Mapping[str, Entry]], found: Joined) -> None:
    """Put the flows together: settings of a cluster must be the same in all flows that have it."""
    for pair, entries in flows.items():
        for key, entry in entries.items():
            first = found.entries.get(key)
            if first is None and not key.startswith(f"{'->'.join(pair)}.") and _lacks(flows, pair, key, found.aliases):
                found.lost.append((entry, "another flow has this cluster without it, and a cluster has its settings for all flows"))
            elif first is None:
                found.entries[key] = entry
            elif _same(key, first.value, entry.value):
                found.named.append((entry, key))
            else:
                found.lost.append((entry, f"{_place(first)} says otherwise, and a cluster has its settings for all flows"))
    for source, target in flows:
        if (target, source) not in flows:
            key = f"{target}->{source}.{HEARTBEATS_KEY}"
            found.entries[key] = Entry(HEARTBEATS_KEY, "false", 0)
            found.why[key] = "no connector writes heartbeats in this direction"


def _lacks(flows: Mapping[tuple[str, str], Mapping[str, Entry]], pair: tuple[str, str], key: str, aliases: Iterable[str]) -> bool:
    """Whether another flow, with the same cluster on the same side as the key says, lacks the key."""
    owner = Keys(tuple(aliases)).scope(key)[0].removesuffix(".")
    return any(owner in other and key not in entries for other, entries in flows.items() if other != pair)


def _decides(key: str) -> bool:
    """Whether a setting of a cluster's clients names the brokers, or the user who logs in."""
    name = key.partition(".")[2]
    role, _, rest = name.partition(".")
    known = CLIENT_PROPERTIES.get(rest if role in ROLES else name)
    return known is not None and known.login


def _same(name: str, value: str, other: str) -> bool:
    """Whether two values mean the same. Of servers one in common is enough: each client learns the others."""
    if name.endswith(SERVERS):
        try:
            return not set(kinds.SERVERS.parse(value)).isdisjoint(kinds.SERVERS.parse(other))
        except ValueError:
            return False
    if name.endswith(".class"):
        return value.strip().rpartition(".")[2] == other.strip().rpartition(".")[2]
    return value.strip() == other.strip()


def _is_off(file: PropertiesFile) -> bool:
    return "enabled" in file.entries and file.entries["enabled"].value.strip().lower() == "false"


def _part(file: PropertiesFile) -> str:
    return PARTS.get(file.entries[CLASS].value.strip().rpartition(".")[2], WHOLE) if CLASS in file.entries else WHOLE


def _place(entry: Entry) -> str:
    return f"{entry.path.name if entry.path else ''}:{entry.line}"
