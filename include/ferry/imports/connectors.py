"""Connectors of a Connect cluster, as JSON or properties, become the flows of one `mm2.properties`.

MM2 does the work of a flow in up to three connectors: one copies, one writes checkpoints, one writes heartbeats. Each reads only its own
properties. So if several connectors have the same property, the value of the connector that reads it counts, and a part of a flow whose
connector is missing is switched off.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ferry.config.connector_file import AROUND, CLASS, PARTS, SOURCE_ALIAS, TARGET_ALIAS, aliases_of, read_connector_file
from ferry.config.connector_file import HEARTBEATS as HEARTBEATS_KEY
from ferry.config.problems import located
from ferry.config.properties import Entry, LineOf, PropertiesFile
from ferry.config.registry.flows import CHECKPOINTS, HEARTBEATS
from ferry.errors import ConfigError
from ferry.imports.documents import Fields, Node, line_of

# The properties that only one connector reads, by the part of a flow that this connector does.
_READ_BY = {known.name: "checkpoint" for known in CHECKPOINTS} | {known.name: "heartbeat" for known in HEARTBEATS}
# Properties that may differ between the connectors of a flow: each connector has its own tasks, and may know other brokers of a cluster.
_MAY_DIFFER = ("tasks.max", "bootstrap.servers", "client.id")
_NAMED = frozenset({SOURCE_ALIAS, TARGET_ALIAS, CLASS, "name"})
_CLASSES = {part: name for name, part in PARTS.items()}
WHOLE = ""  # a connector's file without a class is a whole flow
# The connector whose value of a property counts if several read it.
_STRONGEST = (WHOLE, "source", "checkpoint", "heartbeat")


def connectors_of(path: Path, document: Node) -> list[PropertiesFile]:
    """The connectors of a JSON document: the body of a POST or PUT, a list of such bodies, or an answer with `expand=info`."""
    match document:
        case list():
            return [one for each in document for one in connectors_of(path, each)]
        case {"config": dict() as config}:
            return [connector(path, config)]
        case dict() if document and all(isinstance(value, str) for value in document.values()):
            return [connector(path, document)]
        case dict():
            inner = [value.get("info", value) for value in document.values() if isinstance(value, dict)]
            inner += [one for value in document.values() if isinstance(value, list) for one in value]
            if inner and all(isinstance(one, dict) and "config" in one for one in inner):
                return [one for each in inner for one in connectors_of(path, each)]
    what = 'holds no connector: it must be {"name": …, "config": {…}}, the config alone, or a list of these'
    raise ConfigError(located(path, line_of(document), "", what))


def connector(path: Path, config: Fields) -> PropertiesFile:
    """A connector's file with the entries of `config`. ConfigError for a value that is no text."""
    entries = {}
    for key, value in config.items():
        if not isinstance(value, str):
            raise ConfigError(located(path, key.line, key, "must be a text, a number or a boolean"))
        entries[str(key)] = Entry(str(key), str(value), LineOf(key.line, path))
    return PropertiesFile(path, entries)


@dataclass
class Flows:
    """`entries`: what the connectors say, under the keys of mm2.properties.

    `named`: entries that became more than one key, and the first of these keys; `made`: keys that no connector has, and why they are there;
    `dropped`: entries that have no effect, and why; `lost`: entries that contradict others, and why they are left out.
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    aliases: dict[str, Entry] = field(default_factory=dict)
    named: list[tuple[Entry, str]] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    dropped: list[tuple[Entry, str]] = field(default_factory=list)
    lost: list[tuple[Entry, str]] = field(default_factory=list)
    begun: list[Entry] = field(default_factory=list)
    notes: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, connectors: Iterable[PropertiesFile]) -> None:
        """Add the connectors, of any number of flows. ConfigError if one cannot be read, or no connector of a flow copies."""
        flows: dict[tuple[str, str], dict[str, PropertiesFile]] = {}
        for one in connectors:
            source, target = aliases_of(one)
            self.aliases |= {source.value: source, target.value: target}
            parts = flows.setdefault((source.value, target.value), {})
            part = _part(one)
            if part in parts or (parts and WHOLE in {part, *parts}):
                pair = f"{source.value}->{target.value}"
                what = f"is a second {_CLASSES.get(part, 'connector')} of {pair}, and Ferry has one flow for each pair of clusters"
                raise ConfigError(located(one.path, source.line, CLASS, what))
            parts[part] = one
        for parts in flows.values():
            self._flow(parts)
        for upstream, downstream in flows:
            if (downstream, upstream) not in flows:
                key = f"{downstream}->{upstream}.{HEARTBEATS_KEY}"
                self.entries[key] = Entry(HEARTBEATS_KEY, "false", 0)
                self.made[key] = "no connector writes heartbeats in this direction"

    def _flow(self, parts: Mapping[str, PropertiesFile]) -> None:
        if not {"source", WHOLE} & parts.keys():
            path = next(iter(parts.values())).path
            what = "the flow's MirrorSourceConnector is missing, and Ferry has no flow that does not copy: give its file too"
            raise ConfigError(located(path, 0, "", what))
        source, target = aliases_of(next(iter(parts.values())))
        pair = f"{source.value}->{target.value}"
        off = {part for part in ("checkpoint", "heartbeat") if part in parts and _is_off(parts[part])}
        for part in (part for part in _STRONGEST if part in parts.keys() - off):
            self._connector(part, read_connector_file(parts[part]))
        for part in () if WHOLE in parts else off | (AROUND.keys() - parts.keys()):
            for name in AROUND[part]:
                self.entries[f"{pair}.{name}"] = Entry(name, "false", 0)
                self.made[f"{pair}.{name}"] = f"the {_CLASSES[part]} is {'switched off' if part in off else 'not among the files'}"
        for part in off:
            self.dropped += [(entry, "its connector is switched off") for entry in parts[part].entries.values() if entry.key not in _NAMED]
        for one in parts.values():
            found = {key: entry for key, entry in one.entries.items() if entry.line}
            self.named += [(found[key], "clusters") for key in (SOURCE_ALIAS, TARGET_ALIAS) if key in found]
            self.named += [(found[CLASS], f"{pair}.enabled")] if CLASS in found else []
            self.dropped += [(found["name"], "a flow has no name of its own")] if "name" in found else []

    def _connector(self, part: str, read: PropertiesFile) -> None:
        self.begun += read.begun
        self.notes += read.notes
        pair = "{}->{}.".format(*read.entries["clusters"].value.split(", "))
        for key, entry in read.entries.items():
            reader = _READ_BY.get(key.removeprefix(pair), part) if key.startswith(pair) else part
            first = self.entries.get(key)
            if key == "clusters" or (not key.startswith(pair) and not entry.line):
                continue  # what the connector's own file says of all clusters, and of the other direction
            if part and reader != part:
                self.dropped.append((entry, f"only a {_CLASSES[reader]} reads it"))
            elif first is None:
                self.entries[key] = entry
            elif first.value.strip() != entry.value.strip():
                gone = self.dropped if key.endswith(_MAY_DIFFER) else self.lost
                place = f"{Path(getattr(first.line, 'path', read.path)).name}:{int(first.line)}"
                gone.append((entry, f"{place} says otherwise, and a flow of Ferry has one value"))


def _is_off(file: PropertiesFile) -> bool:
    return "enabled" in file.entries and file.entries["enabled"].value.strip().lower() == "false"


def _part(file: PropertiesFile) -> str:
    return PARTS.get(file.entries[CLASS].value.strip().rpartition(".")[2], WHOLE) if CLASS in file.entries else WHOLE
