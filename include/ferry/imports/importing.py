"""Makes one `mm2.properties` of files of other tools, and says what became of each of their entries.

Each file becomes entries under the keys of mm2.properties, which keep their own key, file and line. Then the loader examines them as it
examines every config: its warnings and problems say what has no effect, and what Ferry cannot keep. What it cannot keep stays in the new
file as a comment, and the flows that it concerns are switched off: a person decides before Ferry copies otherwise than the other tool did.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path, PurePosixPath

from ferry.config.connector_file import is_connector_file
from ferry.config.keys import Keys
from ferry.config.legacy_file import is_legacy_file, read_legacy_file
from ferry.config.loader import examine
from ferry.config.older_names import with_successors
from ferry.config.problems import Problems, Told, located
from ferry.config.properties import Entry, LineOf, PropertiesFile, parse_properties, read_bytes
from ferry.config.providers import PROVIDERS, with_references
from ferry.errors import ConfigError
from ferry.imports.command_line import command_of, read_command_line
from ferry.imports.connectors import Flows, connectors_of
from ferry.imports.documents import read_json, read_yaml
from ferry.imports.strimzi import KINDS, Resource

# A file of a Connect worker has these; only its config providers matter.
_WORKER = frozenset({"offset.storage.topic", "offset.storage.file.filename", "plugin.path", "group.id", "rest.port", "listeners"})
_PROVIDERS = "config.providers"
# Strimzi's provider of environment variables, and usual names of Kafka's own.
_SAME_PROVIDER = {"strimzienv": "env", "envVar": "env", "envvar": "env", "dir": "directory"}
_YAML = re.compile(r"^(apiVersion|kind):", re.MULTILINE)


class Fate(Enum):
    """What became of an entry of an input file."""

    TAKEN = "taken over"
    NO_EFFECT = "no effect"
    NOT_KEPT = "cannot be kept"


@dataclass(frozen=True)
class Row:
    """One entry of an input. `becomes`: its key in mm2.properties, empty if it is not there; `why`: what a person should know about it."""

    path: str
    line: int
    key: str
    fate: Fate
    becomes: str
    why: str


@dataclass(frozen=True)
class Imported:
    """`entries`: of the new file, by key; `rows`: every entry of the inputs, in their order; `off`: the flows that were switched off.

    `made`: keys of the new file that no input has, and why they are there.
    """

    entries: dict[str, Entry]
    made: dict[str, str]
    rows: tuple[Row, ...]
    off: frozenset[str]


@dataclass
class _Inputs:
    """What the files hold, all of them together."""

    secrets: PurePosixPath
    connectors: list[PropertiesFile] = field(default_factory=list)
    whole: list[PropertiesFile] = field(default_factory=list)
    workers: dict[str, Entry] = field(default_factory=dict)
    named: list[tuple[Entry, str]] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    dropped: list[tuple[Entry, str]] = field(default_factory=list)
    lost: list[tuple[Entry, str]] = field(default_factory=list)

    def read(self, path: Path) -> None:
        data = read_bytes(path)
        text = data.decode("utf-8", errors="replace")
        if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
            self.connectors += connectors_of(path, read_json(path, text))
        elif _YAML.search(text):
            self._resources(path, text)
        elif command := command_of(text):
            legacy, idle = read_command_line(path, *command)
            self.whole.append(read_legacy_file(legacy))
            self.dropped += [(Entry(option, "", LineOf(line, path)), why) for line, option, why in idle]
        else:
            self._properties(parse_properties(path, data))

    def _resources(self, path: Path, text: str) -> None:
        resource, found = Resource(path, self.secrets), False
        for document in read_yaml(path, text):
            if isinstance(document, dict) and document.get("kind") in KINDS:
                found = True
                self.connectors += resource.connectors(document)
        if not found:
            raise ConfigError(located(path, 0, "", f"holds no resource of the kinds {' and '.join(KINDS)}"))
        self.lost += [(Entry(name, "", LineOf(line, path)), why) for (line, name), why in resource.lost.items()]

    def _properties(self, file: PropertiesFile) -> None:
        entries = {key: replace(entry, line=LineOf(entry.line, file.path)) for key, entry in file.entries.items()}
        placed = replace(file, entries=entries)
        if "clusters" in entries:
            self.whole.append(placed)
        elif is_legacy_file(placed):
            self.whole.append(read_legacy_file(placed))
        elif is_connector_file(placed):
            self.connectors.append(placed)
        elif _WORKER & entries.keys():
            self.workers |= {key: entry for key, entry in entries.items() if key.startswith(_PROVIDERS)}
            self.dropped += [(entry, "Ferry has no Connect worker") for key, entry in entries.items() if not key.startswith(_PROVIDERS)]
        else:
            what = "is no config of MirrorMaker: it has neither clusters, nor connector.class, nor source.cluster.alias"
            raise ConfigError(located(file.path, 0, "", what))

    def together(self) -> PropertiesFile:
        """All entries under the keys of mm2.properties. ConfigError if the files do not belong together."""
        if len(self.whole) + bool(self.connectors) != 1:
            paths = ", ".join(dict.fromkeys(str(file.path) for file in (*self.whole, *self.connectors)))
            what = f"each is a config of its own ({paths}): import them one by one" if paths else "no file holds a flow"
            raise ConfigError(what)
        if self.whole:
            (file,) = self.whole
            flowing = _with_flows(dict(file.entries))
            self.made |= dict.fromkeys(flowing.keys() - file.entries.keys(), "KIP-382's samples run each flow; MM2 needs this key")
            return replace(file, entries=flowing)
        flows = Flows()
        flows.add(self.connectors)
        self.named, self.made = flows.named, flows.made
        self.dropped += flows.dropped
        self.lost += flows.lost
        entries = {"clusters": Entry("clusters", ", ".join(flows.aliases), 0), **flows.entries}
        return PropertiesFile(self.connectors[0].path, entries, notes=tuple(flows.notes), begun=tuple(flows.begun))


def import_files(paths: Sequence[Path], secrets: PurePosixPath) -> Imported:
    """Read the files, which together are one config. `secrets`: the directory into which Kubernetes' Secrets will be mounted.

    ConfigError if a file cannot be read, or if a cluster has no servers.
    """
    inputs = _Inputs(secrets)
    for path in paths:
        inputs.read(path)
    file = inputs.together()
    file = replace(file, entries=_with_providers({**inputs.workers, **file.entries}, secrets))
    aliases = [alias.strip() for alias in file.entries["clusters"].value.split(",")]
    renamed = Problems(file.path)
    file = replace(file, entries=with_successors(file.entries, Keys(tuple(aliases)), renamed))
    kept, problems = _kept(file)
    warned = {key: told for told in (*renamed.warned, *examine(kept).warned) for key in _keys_of(file, told)}
    rows = [_row(file, key, entry, problems.get(key), warned.get(key)) for key, entry in file.entries.items() if entry.line]
    rows += [Row(*_place(file, entry), entry.key, Fate.TAKEN, key, "") for entry, key in inputs.named]
    rows += [Row(*_place(file, entry), entry.key, Fate.NO_EFFECT, "", why) for entry, why in inputs.dropped]
    rows += [Row(*_place(file, entry), entry.key, Fate.NOT_KEPT, "", why) for entry, why in inputs.lost]
    idle = {row.becomes for row in rows if row.fate is Fate.NO_EFFECT}
    enabled = [pair for pair in _pairs(aliases) if f"{pair}.enabled" in kept.entries]
    off = frozenset(pair for pair in enabled if inputs.lost or any(_concerns(key, pair, aliases) for key in problems))
    entries = {key: entry for key, entry in kept.entries.items() if key not in idle}
    named = [replace(row, becomes="") if row.fate is Fate.NO_EFFECT else row for row in rows]
    return Imported(entries, inputs.made, tuple(sorted(named, key=lambda row: (row.path, row.line, row.key))), off)


def _kept(file: PropertiesFile) -> tuple[PropertiesFile, dict[str, Told]]:
    """The file without the entries that Ferry refuses, and these by their key, with the first problem of each."""
    refused: dict[str, Told] = {}
    kept, first = file, examine(file)
    found = first
    while found.found:
        named = {key: told for told in found.found for key in _keys_of(kept, told)}
        if not named or any(key.endswith("bootstrap.servers") or key == "clusters" for key in named):
            first.raise_if_any()
        refused |= named
        kept = replace(kept, entries={key: entry for key, entry in kept.entries.items() if key not in named})
        found = examine(kept)
    return kept, refused


def _keys_of(file: PropertiesFile, told: Told) -> list[str]:
    """The keys of mm2.properties under which stands what a problem or warning is about."""
    return [key for key, entry in file.entries.items() if entry.line and (*_place(file, entry), entry.key) == told[:3]]


def _row(file: PropertiesFile, key: str, entry: Entry, problem: Told | None, warning: Told | None) -> Row:
    place = _place(file, entry)
    if problem is not None:
        return Row(*place, entry.key, Fate.NOT_KEPT, key, problem.what)
    if warning is not None and warning.is_about_no_effect:
        return Row(*place, entry.key, Fate.NO_EFFECT, key, warning.what)
    return Row(*place, entry.key, Fate.TAKEN, key, warning.what if warning else "")


def _place(file: PropertiesFile, entry: Entry) -> tuple[str, int]:
    return str(getattr(entry.line, "path", file.path)), int(entry.line)


def _concerns(key: str, pair: str, aliases: Iterable[str]) -> bool:
    """Whether an entry is about the flow: it is the flow's, or of one of its clusters, or of all flows."""
    if "->" in key:
        return key.startswith(f"{pair}.")
    owner = max((alias for alias in aliases if key.startswith(f"{alias}.")), key=len, default=None)
    return owner is None or owner in pair.split("->")


def _with_flows(entries: dict[str, Entry]) -> dict[str, Entry]:
    """The samples of KIP-382 run every flow that they name, or all; MM2 wants `enabled`."""
    aliases = [alias.strip() for alias in entries["clusters"].value.split(",")]
    if any(f"{pair}.enabled" in entries for pair in _pairs(aliases)):
        return entries
    named = [pair for pair in _pairs(aliases) if any(key.startswith(f"{pair}.") for key in entries)]
    return entries | {f"{pair}.enabled": Entry("enabled", "true", 0) for pair in named or _pairs(aliases)}


def _pairs(aliases: Sequence[str]) -> list[str]:
    return [f"{source}->{target}" for source in aliases for target in aliases if source != target]


def _with_providers(entries: dict[str, Entry], secrets: PurePosixPath) -> dict[str, Entry]:
    """Entries whose references name providers that Ferry has, and the declarations of those that are not declared."""
    declared = {name.strip() for name in entries[_PROVIDERS].value.split(",")} if _PROVIDERS in entries else set()
    used: dict[str, None] = {}

    def change(provider: str, path: str, key: str) -> str:
        name = provider if provider in declared else _SAME_PROVIDER.get(provider, provider)
        if provider == "secrets" and provider not in declared:  # Strimzi's KubernetesSecretConfigProvider: namespace/name
            name, path = "directory", str(secrets / path.rpartition("/")[2])
        if name in PROVIDERS and name not in declared:
            used[name] = None
        return f"${{{name}:{path}:{key}}}" if path else f"${{{name}:{key}}}"

    found = {key: replace(entry, value=with_references(entry.value, change)) for key, entry in entries.items()}
    if not used:
        return found
    names = ", ".join((*sorted(declared), *used))
    declaration = {_PROVIDERS: Entry(_PROVIDERS, names, 0)}
    return found | declaration | {f"{_PROVIDERS}.{name}.class": Entry(_PROVIDERS, PROVIDERS[name], 0) for name in used}
