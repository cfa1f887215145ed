"""Makes one `mm2.properties` of files of other tools, and says what became of each of their entries.

Each file becomes entries under the keys of mm2.properties, which remember their own key, file and line. Then the loader examines the new
file as it examines every config: its warnings and problems say which entries have no effect, and which Ferry cannot keep. An entry that
Ferry cannot keep stays in the new file as a comment, and the flows that it concerns are switched off. So a person decides before Ferry
copies in another way than the other tool.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path, PurePosixPath

from ferry.config.connector_file import is_connector_file
from ferry.config.keys import Keys
from ferry.config.legacy_file import is_legacy_file, read_legacy_file
from ferry.config.loader import examine
from ferry.config.older_names import with_successors
from ferry.config.problems import Problems, Told, located, without_secrets
from ferry.config.properties import Entry, PropertiesFile, parse_properties, read_bytes
from ferry.config.providers import PROVIDERS, with_references
from ferry.errors import ConfigError
from ferry.imports.command_line import commands_of, read_command_line
from ferry.imports.connectors import Joined, connectors_of, is_of_mm2, joined
from ferry.imports.lined_documents import Fields, decoded, read_json, read_yaml
from ferry.imports.strimzi import KINDS, Resource

# A file of a Connect worker has these; only its config providers and its topic of offsets matter.
_WORKER = frozenset({"offset.storage.topic", "offset.storage.file.filename", "plugin.path", "group.id", "rest.port", "listeners"})
_OFFSETS, _CONNECTORS_OFFSETS = "offset.storage.topic", "offsets.storage.topic"
_PROVIDERS = "config.providers"
# Strimzi's config providers, and usual names of Kafka's own.
_SAME_PROVIDER = {
    "strimzienv": "env",
    "envVar": "env",
    "envvar": "env",
    "dir": "directory",
    "strimzidir": "directory",
    "strimzifile": "file",
}
_OF_KUBERNETES = frozenset({"secrets", "strimzisecrets"})
_YAML = re.compile(r"^\ufeff?(apiVersion|kind):", re.MULTILINE)
_NEW = Path("mm2.properties")


class Fate(Enum):
    """What became of an entry of an input file."""

    TAKEN = "taken over"
    NO_EFFECT = "no effect"
    NOT_KEPT = "cannot be kept"


@dataclass(frozen=True)
class Row:
    """One entry of an input. `becomes`: its key in mm2.properties, empty if it is not there; `why`: what a person should know about it.

    Its texts hold no secrets and no control characters.
    """

    path: str
    line: int
    key: str
    fate: Fate
    becomes: str
    why: str


@dataclass(frozen=True)
class Imported:
    entries: dict[str, Entry]  # The entries of the new file, by key.
    why: dict[str, str]  # What a person should know about keys of the new file.
    rows: tuple[Row, ...]  # Every entry of the inputs, in their order.
    off: frozenset[str]  # The flows that were switched off.
    missing: tuple[str, ...]  # What the new file lacks before it can be loaded.


@dataclass
class _Inputs:
    secrets: PurePosixPath
    connectors: list[PropertiesFile] = field(default_factory=list)
    whole: list[PropertiesFile] = field(default_factory=list)
    workers: dict[str, Entry] = field(default_factory=dict)
    offsets_topic: Entry | None = None
    found: Joined = field(default_factory=Joined)

    def read(self, path: Path) -> None:
        data = read_bytes(path)
        start = data.lstrip(b" \t\r\n")[:1]
        if start in {b"{", b"["}:
            self._documents(path, [read_json(path, decoded(path, data))])
        elif _YAML.search(data.decode("latin-1")):
            self._documents(path, list(read_yaml(path, decoded(path, data))))
        elif commands := commands_of(data.decode("utf-8", errors="replace")):
            self._commands(path, commands)
        else:
            self._properties(parse_properties(path, data))

    def _documents(self, path: Path, documents: Sequence[object]) -> None:
        """The documents of a file. If some are resources of Kubernetes, those of other kinds do not matter."""
        kinds = [one for document in documents for one in _resources(document)]
        resources = [one for one in kinds if one["kind"] in KINDS]
        if kinds and not resources:
            raise ConfigError(located(path, 0, "", f"holds no resource of the kinds {' and '.join(KINDS)}"))
        resource = Resource(path, self.secrets)
        for one in resources:
            self._connectors(resource.connectors(one))
        self.found.lost += resource.lost.items()
        if (topic := resource.offsets_topic) is not None:
            self.offsets_topic = Entry("offsetStorageTopic", str(topic), topic.line, path)
        for document in () if resources else documents:
            self._connectors(connectors_of(path, document))

    def _connectors(self, found: Iterable[PropertiesFile]) -> None:
        for one in found:
            if is_of_mm2(one):
                self.connectors.append(one)
            else:
                self.found.dropped += [(entry, "it is no connector of MirrorMaker 2") for entry in one.entries.values()]

    def _commands(self, path: Path, commands: Sequence[tuple[int, str]]) -> None:
        if len(commands) > 1:
            lines = ", ".join(str(line) for line, _ in commands)
            raise ConfigError(located(path, 0, "", f"holds {len(commands)} commands (lines {lines}): import each from a file of its own"))
        legacy, idle = read_command_line(path, *commands[0])
        self.whole.append(read_legacy_file(legacy))
        self.found.dropped += idle

    def _properties(self, file: PropertiesFile) -> None:
        entries = file.entries
        self.found.dropped += [(entry, "is given again below, and the last one wins") for entry in file.overridden]
        if is_connector_file(file):
            self._connectors([file])
        elif "clusters" in entries:
            self.whole.append(file)
        elif is_legacy_file(file):
            self.whole.append(read_legacy_file(file))
        elif _WORKER & entries.keys():
            self.workers |= {key: entry for key, entry in entries.items() if key.startswith(_PROVIDERS)}
            self.offsets_topic = entries.get(_OFFSETS, self.offsets_topic)
            gone = [entry for key, entry in entries.items() if not key.startswith(_PROVIDERS) and key != _OFFSETS]
            self.found.dropped += [(entry, "Ferry has no Connect worker") for entry in gone]
        else:
            what = "is no config of MirrorMaker: it has neither clusters, nor connector.class, nor source.cluster.alias"
            raise ConfigError(located(file.path, 0, "", what))

    def together(self) -> dict[str, Entry]:
        """All entries under the keys of mm2.properties. ConfigError if the files do not belong together."""
        if len(self.whole) + bool(self.connectors) != 1:
            paths = ", ".join(dict.fromkeys(str(file.path) for file in (*self.whole, *self.connectors)))
            what = f"each is a config of its own ({paths}): import them one by one" if paths else "no file holds a flow of MirrorMaker"
            raise ConfigError(what)
        if self.whole:
            return self._whole(self.whole[0])
        found = joined(self.connectors, self.found)
        entries = {"clusters": Entry("clusters", ", ".join(found.aliases), 0), **found.entries}
        if self.offsets_topic is not None:
            for pair in _pairs(found.aliases):
                if f"{pair}.enabled" in entries:
                    entries.setdefault(f"{pair}.{_CONNECTORS_OFFSETS}", self.offsets_topic)
        return entries

    def _whole(self, file: PropertiesFile) -> dict[str, Entry]:
        aliases, found = clusters_of(file.entries), self.found
        told, keys = Problems(file.path), Keys(tuple(aliases))
        entries = with_successors(file.entries, keys, told)
        gone = [entry for entry in file.entries.values() if entry not in entries.values()]
        because = {(line, key): what for _, line, key, what in told.warned} | {(entry.line, entry.key): what for entry, what in file.notes}
        found.dropped += [(entry, because.get((entry.line, entry.key), "has no effect")) for entry in gone]
        found.why = {key: because[entry.line, entry.key] for key, entry in entries.items() if (entry.line, entry.key) in because}
        found.begun += file.begun
        for pair in _flows_of_samples(entries, aliases) if any(map(keys.older_form, file.entries)) else ():
            entries[f"{pair}.enabled"] = Entry("enabled", "true", 0)
            found.why[f"{pair}.enabled"] = "KIP-382's samples run each flow; MM2 needs this key"
        return entries


def _resources(document: object) -> list[Fields]:
    """The resources of Kubernetes in a document, which may be a list of them; empty if it is another document."""
    listed = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else None
    return [one for one in (listed if isinstance(listed, list) else [document]) if isinstance(one, dict) and "kind" in one]


def _flows_of_samples(entries: Mapping[str, Entry], aliases: Sequence[str]) -> Sequence[str]:
    """The flows that a file in the form of KIP-382's samples means: those that its keys name, or all; none if a key enables one."""
    pairs = _pairs(aliases)
    if any(f"{pair}.enabled" in entries for pair in pairs):
        return ()
    return [pair for pair in pairs if any(key.startswith(f"{pair}.") for key in entries)] or pairs


def clusters_of(entries: Mapping[str, Entry]) -> list[str]:
    """The aliases in `clusters`."""
    return [alias.strip() for alias in entries["clusters"].value.split(",")]


def import_files(paths: Sequence[Path], secrets: PurePosixPath) -> Imported:
    """Read the files, which together are one config. `secrets`: the directory into which Kubernetes' Secrets will be mounted.

    ConfigError if a file cannot be read, if a cluster has no servers, or if there is no flow.
    """
    inputs = _Inputs(secrets)
    for path in paths:
        inputs.read(path)
    entries, found = _with_providers(inputs.together(), inputs.workers, secrets), inputs.found
    lost = [*found.lost, *((entry, "a PEM text begins here that continues in the next line") for entry in found.begun)]
    aliases = clusters_of(entries)
    refused, missing = _refused(entries, aliases)
    kept = {key: entry for key, entry in entries.items() if key not in refused}
    problems, enabled = examine(_numbered(kept))
    warned = _by_key(kept, problems.warned)
    idle = {key for key, told in warned.items() if "has no effect" in told.what}  # every such warning has these words
    why = found.why | {key: told.what for key, told in (warned | refused).items()}
    off = frozenset(enabled) if lost else _concerned(enabled, aliases, {*refused, *(f"{told.key}." for told in missing)})
    fates = dict.fromkeys(entries, Fate.TAKEN) | dict.fromkeys(idle, Fate.NO_EFFECT) | dict.fromkeys(refused, Fate.NOT_KEPT)
    rows = _rows(entries, found, lost, fates, why)
    new = {key: entry for key, entry in kept.items() if key not in idle}
    new |= {f"{pair}.enabled": Entry("enabled", "false", 0) for pair in off}
    because = {key: printable(text) for key, text in why.items()}
    ordered = tuple(sorted(dict.fromkeys(rows), key=lambda row: (row.path, row.line, row.key)))
    return Imported(new, because, ordered, off, tuple(printable(f"{told.key}: {told.what}") for told in missing))


def _concerned(flows: Iterable[str], aliases: Sequence[str], keys: Collection[str]) -> frozenset[str]:
    """The flows that a key concerns: it is the flow's, or of one of its clusters, or of all flows, or of a flow that is not there."""
    owners = {Keys(tuple(aliases)).scope(key)[0].removesuffix(".") for key in keys}
    return frozenset(pair for pair in flows if not owners.isdisjoint({"", pair, *pair.split("->")}))


def _rows(
    entries: Mapping[str, Entry], found: Joined, lost: Iterable[tuple[Entry, str]], fates: Mapping[str, Fate], why: Mapping[str, str]
) -> Iterator[Row]:
    """The rows of all entries of the inputs: of those with a key in the new file, then of the others."""
    for key, entry in entries.items():
        if entry.line:
            yield _row(entry, fates[key], "" if fates[key] is Fate.NO_EFFECT else key, why.get(key, ""))
    yield from (_row(entry, Fate.TAKEN, key, "") for entry, key in found.named)
    yield from (_row(entry, Fate.NO_EFFECT, "", told) for entry, told in found.dropped)
    yield from (_row(entry, Fate.NOT_KEPT, "", told) for entry, told in lost)


def _row(entry: Entry, fate: Fate, becomes: str, why: str) -> Row:
    return Row(str(entry.path or ""), entry.line, printable(entry.key), fate, becomes, printable(why))


def printable(text: str) -> str:
    """`text` in one line, without secrets and without control characters, which could write lines into a file or move a cursor."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in without_secrets(text))


def _numbered(entries: Mapping[str, Entry]) -> PropertiesFile:
    """The new file: each entry has its new key and a line of its own, so that a problem names one entry."""
    return PropertiesFile(_NEW, {key: Entry(key, entry.value, number) for number, (key, entry) in enumerate(entries.items(), start=1)})


def _by_key(entries: Mapping[str, Entry], told: Iterable[Told]) -> dict[str, Told]:
    """The first warning or problem of each entry of the numbered file."""
    keys = dict(enumerate(entries, start=1))
    return {keys[one.line]: one for one in reversed(list(told)) if one.line in keys}


def _refused(entries: Mapping[str, Entry], aliases: Sequence[str]) -> tuple[dict[str, Told], tuple[Told, ...]]:
    """The refused entries, each with its first problem; and the problems of the file without them. ConfigError as of `import_files`."""
    refused: dict[str, Told] = {}
    first, enabled = examine(_numbered(entries))
    found = first
    while found.found:
        kept = {key: entry for key, entry in entries.items() if key not in refused}
        named = _by_key(kept, found.found)
        if any(key.endswith("bootstrap.servers") or key == "clusters" for key in named):
            raise _refusal(entries, first.found)
        if not named:
            break
        refused |= named
        found, _ = examine(_numbered({key: entry for key, entry in kept.items() if key not in named}))
    missing = tuple(told for told in found.found if told.key or not _is_switched_off(entries, aliases))
    if _is_unusable(missing, enabled):
        raise _refusal(entries, first.found)
    return refused, tuple(told for told in missing if told.key)


def _is_unusable(missing: Iterable[Told], enabled: Collection[str]) -> bool:
    """Whether a person cannot complete the new file: a cluster has no servers, or there is no flow."""
    return any(told.key.endswith("bootstrap.servers") or not (told.key or enabled) for told in missing)


def _refusal(entries: Mapping[str, Entry], told: Iterable[Told]) -> ConfigError:
    """The problems of the numbered file, at their places in the inputs."""
    written = list(entries.values())
    input_path = next((entry.path for entry in written if entry.path), _NEW)
    placed = [(written[one.line - 1] if one.line else Entry(one.key, "", 0), one.what) for one in told]
    return ConfigError("\n".join(located(entry.path or input_path, entry.line, entry.key, what) for entry, what in placed))


def _is_switched_off(entries: Mapping[str, Entry], aliases: Sequence[str]) -> bool:
    """Whether the inputs themselves switch a flow off."""
    return any(f"{pair}.enabled" in entries and entries[f"{pair}.enabled"].value.strip().lower() != "true" for pair in _pairs(aliases))


def _pairs(aliases: Iterable[str]) -> list[str]:
    return [pair.name for pair in Keys(tuple(aliases)).pairs]


def _with_providers(entries: dict[str, Entry], workers: dict[str, Entry], secrets: PurePosixPath) -> dict[str, Entry]:
    """Entries whose references name providers that Ferry has, and the declarations of those that are not declared."""
    every = {**workers, **entries}
    declared = [name for name in (every[_PROVIDERS].value if _PROVIDERS in every else "").replace(" ", "").split(",") if name]
    used: dict[str, None] = {}

    def change(provider: str, path: str, key: str) -> str:
        name = provider if provider in declared else _SAME_PROVIDER.get(provider, provider)
        if provider in _OF_KUBERNETES and provider not in declared:  # namespace/name of a Secret
            name, path = "directory", str(secrets / path.rpartition("/")[2])
        if name in PROVIDERS and name not in declared:
            used[name] = None
        return f"${{{name}:{path}:{key}}}" if path else f"${{{name}:{key}}}"

    found = {key: replace(entry, value=with_references(entry.value, change)) for key, entry in every.items()}
    if used:
        found[_PROVIDERS] = replace(found.get(_PROVIDERS, Entry(_PROVIDERS, "", 0)), value=", ".join((*declared, *used)))
        found |= {f"{_PROVIDERS}.{name}.class": Entry(_PROVIDERS, PROVIDERS[name], 0) for name in used}
    return found
