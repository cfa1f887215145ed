"""Filters: which topics, groups and topic configs a flow replicates (KIP-382, KIP-894).

A custom filter has MM2's methods: `should_replicate_topic`, `should_replicate_group`, or `should_replicate_config_property` and
`should_replicate_source_default`. MM2's own filters (DefaultTopicFilter, DefaultGroupFilter, DefaultConfigPropertyFilter) are lists of Java
regular expressions (java_patterns). An empty include copies nothing, an empty exclude excludes nothing. Exclusion wins.
"""

from collections.abc import Mapping, Sequence

from ferry.policy.custom_classes import CustomObject
from ferry.policy.java_patterns import java_pattern


class IncludeExclude:
    """MM2's DefaultTopicFilter and DefaultGroupFilter: included and not excluded; `key` is the property of the include list."""

    def __init__(self, key: str, include: Sequence[str], exclude: Sequence[str]) -> None:
        self._key = key
        self._include = java_pattern(include, key)
        self._exclude = java_pattern(exclude, f"{key}.exclude")

    def why_not(self, name: str) -> str | None:
        if not self._include.fullmatch(name):
            return f"not in the property {self._key}"
        return f"in the property {self._key}.exclude" if self._exclude.fullmatch(name) else None


class DefaultConfigPropertyFilter:
    """`config.properties.exclude` and `use.defaults.from` (KIP-894): only the exact value `source` copies defaults."""

    def __init__(self, exclude: Sequence[str], use_defaults_from: str) -> None:
        self._exclude = java_pattern(exclude, "config.properties.exclude")
        self._source_defaults = use_defaults_from == "source"

    def why_not(self, name: str) -> str | None:
        return "in the property config.properties.exclude" if self._exclude.fullmatch(name) else None

    def should_replicate_source_default(self, name: str) -> bool:  # noqa: ARG002 - the same answer for every name, as in MM2
        return self._source_defaults


class CustomFilter:
    """Asks an object of the class at `path` by its `methods`. The first says whether a name is in."""

    def __init__(self, path: str, properties: Mapping[str, str], *methods: str) -> None:
        self._method = methods[0]
        self._custom = CustomObject(path, methods, properties)

    def why_not(self, name: str) -> str | None:
        return None if self._custom.ask(self._method, name, wants=(bool,)) else f"left out by {self._custom.path}"

    def should_replicate_source_default(self, name: str) -> bool:
        return self._custom.ask("should_replicate_source_default", name, wants=(bool,))


# Decides about topics or groups. `why_not`: the reason for leaving one out; None when it is in.
NameRule = IncludeExclude | CustomFilter
# Decides about topic configs. `should_replicate_source_default`: whether a config that has the default at the source is written (KIP-894).
ConfigPropertyRule = DefaultConfigPropertyFilter | CustomFilter
