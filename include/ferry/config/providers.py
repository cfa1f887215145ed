"""Config providers: `${provider:[path:]key}` in a value is a reference to a text that is kept elsewhere.

These are Kafka's EnvVarConfigProvider, FileConfigProvider and DirectoryConfigProvider, under their Java class names and with their
parameters. A reference is resolved where its value is used, for example on a Spark executor. If MM2 cannot resolve a reference, it uses the
text of the reference as the value, and the login fails without a reason. Ferry raises a ConfigError that names provider and key, but not
the value.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ferry.config.problems import Problems
from ferry.config.properties import GOES_ON, Entry, read_properties
from ferry.config.registry import kinds
from ferry.errors import ConfigError

# As in Kafka's ConfigTransformer.
_REFERENCE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
_PREFIX = "config.providers."
_PACKAGE = "org.apache.kafka.common.config.provider."
# The class of each kind.
PROVIDERS = {kind: f"{_PACKAGE}{name}ConfigProvider" for kind, name in (("env", "EnvVar"), ("file", "File"), ("directory", "Directory"))}


class UnresolvedReference(Exception):
    """A reference cannot be resolved; the text says which and why, without the value."""


@dataclass(frozen=True)
class Provider:
    """One config provider. `allowed` limits what it may read: paths, or a regular expression for variable names; None: no limit."""

    name: str
    kind: str
    allowed: str | None = None

    def get(self, path: str, key: str) -> str:
        """The value; UnresolvedReference if there is none or it is not allowed."""
        if self.kind == "env":
            return self._variable(key)
        place = Path(os.path.normpath(path))
        allowed = None if self.allowed is None else kinds.LIST.parse(self.allowed)
        if allowed is not None and not any(place.is_relative_to(os.path.normpath(one)) for one in allowed):
            raise UnresolvedReference(f"provider {self.name} may not read {path}: see config.providers.{self.name}.param.allowed.paths")
        return self._property(place, key) if self.kind == "file" else self._file(place, key)

    def _variable(self, key: str) -> str:
        if self.allowed is not None and not re.fullmatch(self.allowed, key):
            raise UnresolvedReference(f"provider {self.name} may not read {key}: see config.providers.{self.name}.param.allowlist.pattern")
        if key not in os.environ:
            raise UnresolvedReference(f"provider {self.name} has no variable {key}: set it in the environment of this process")
        return os.environ[key]

    def _property(self, path: Path, key: str) -> str:
        try:
            file = read_properties(path)
        except ConfigError as problem:
            raise UnresolvedReference(f"provider {self.name}: {problem}") from problem
        if key not in file.entries:
            raise UnresolvedReference(f"provider {self.name} has no key {key} in {path}")
        if any(entry.key == key for entry in file.begun):
            raise UnresolvedReference(f"provider {self.name}: key {key} in {path}: {GOES_ON}")
        return file.entries[key].value

    def _file(self, directory: Path, key: str) -> str:
        # Kafka reads only plain files directly in the directory.
        if key != Path(key).name or "\0" in key or not (directory / key).is_file():
            raise UnresolvedReference(f"provider {self.name} has no file {key} in {directory}")
        try:
            return (directory / key).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise UnresolvedReference(f"provider {self.name} cannot read file {key} in {directory}: {type(problem).__name__}") from problem


@dataclass(frozen=True)
class Providers:
    providers: tuple[Provider, ...] = ()

    def resolve(self, text: str) -> str:
        """`text` with every reference replaced; UnresolvedReference for the first that cannot be resolved."""
        return _REFERENCE.sub(self._value, text)

    def check(self, text: str) -> None:
        """UnresolvedReference if `text` refers to a provider that the file does not declare."""
        for found in _REFERENCE.finditer(text):
            self._provider(found[1])

    def _value(self, found: re.Match[str]) -> str:
        return self._provider(found[1]).get(found[3] or "", found[4])

    def _provider(self, name: str) -> Provider:
        for provider in self.providers:
            if provider.name == name:
                return provider
        known = ", ".join(provider.name for provider in self.providers) or "none"
        raise UnresolvedReference(f"there is no provider {name} in config.providers (declared: {known})")


def has_reference(text: str) -> bool:
    return _REFERENCE.search(text) is not None


def with_references(text: str, change: Callable[[str, str, str], str]) -> str:
    """`text` with what `change` makes of each reference: of its provider, path (may be empty) and key."""
    return _REFERENCE.sub(lambda found: change(found[1], found[3] or "", found[4]), text)


def is_reference(text: str) -> bool:
    return _REFERENCE.fullmatch(text.strip()) is not None


def without_references(text: str) -> str:
    """`text` with a plain word instead of every reference, to check its form."""
    return _REFERENCE.sub("reference", text)


def is_provider_key(key: str, declared: Iterable[str]) -> bool:
    return any(key == f"{_PREFIX}{name}.class" or key.startswith(f"{_PREFIX}{name}.param.") for name in declared)


def read_providers(entries: Mapping[str, Entry], problems: Problems) -> Providers:
    listing = entries.get("config.providers")
    if listing is None:
        return Providers()
    try:
        names = kinds.LIST.parse(listing.value)
    except ValueError:
        problems.add(f"must be {kinds.LIST.wants}", listing)
        return Providers()
    found = [_read_provider(name, listing, entries, problems) for name in names]
    return Providers(tuple(provider for provider in found if provider is not None))


def _read_provider(name: str, listing: Entry, entries: Mapping[str, Entry], problems: Problems) -> Provider | None:
    java_class = entries.get(f"{_PREFIX}{name}.class")
    if java_class is None:
        problems.add(f"provider {name} has no class: add {_PREFIX}{name}.class", listing)
        return None
    name_of_class = f"{_PACKAGE}{java_class.value.strip().removeprefix(_PACKAGE)}"
    kind = next((kind for kind, known in PROVIDERS.items() if known == name_of_class), None)
    if kind is None:
        what = "Ferry knows EnvVarConfigProvider, FileConfigProvider and DirectoryConfigProvider of org.apache.kafka.common.config.provider"
        problems.add(what, java_class)
        return None
    parameter = "allowlist.pattern" if kind == "env" else "allowed.paths"
    prefix = f"{_PREFIX}{name}.param."
    for entry in entries.values():
        if entry.key.startswith(prefix) and entry.key != prefix + parameter:
            problems.add("is not a parameter of this provider", entry, nearest=prefix + parameter)
    allowed = entries.get(prefix + parameter)
    if kind == "env" and allowed is not None:
        try:
            re.compile(allowed.value)
        except re.error:
            problems.add("must be a regular expression", allowed)
            return None
    return Provider(name, kind, None if allowed is None else allowed.value)
