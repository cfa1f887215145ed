"""MM2's own filters (DefaultTopicFilter, DefaultGroupFilter, DefaultConfigPropertyFilter): lists of Java regular expressions.

The elements of a list are joined by `|` into one expression, which must match a whole name. An empty list matches nothing: an empty
include copies nothing, an empty exclude excludes nothing. Exclusion wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferry.policy.java_patterns import java_pattern


class _IncludeExclude:
    """Included and not excluded; `key` is the property of the include list."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str], key: str) -> None:
        self._include = java_pattern(include, key)
        self._exclude = java_pattern(exclude, f"{key}.exclude")
        self._key = key

    def why_not(self, name: str) -> str | None:
        """The reason for leaving `name` out; None when it is in."""
        if self._include is None or not self._include.fullmatch(name):
            return f"not in {self._key}"
        if self._exclude is not None and self._exclude.fullmatch(name):
            return f"in {self._key}.exclude"
        return None


class DefaultTopicFilter(_IncludeExclude):
    """`topics` and `topics.exclude`."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        super().__init__(include, exclude, "topics")

    def should_replicate_topic(self, name: str) -> bool:
        """Whether the lists say that `name` is copied."""
        return self.why_not(name) is None


class DefaultGroupFilter(_IncludeExclude):
    """`groups` and `groups.exclude`."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        super().__init__(include, exclude, "groups")

    def should_replicate_group(self, name: str) -> bool:
        """Whether the lists say that the group is checkpointed."""
        return self.why_not(name) is None


class DefaultConfigPropertyFilter:
    """`config.properties.exclude` and `use.defaults.from` (KIP-894): only the exact value `source` copies defaults."""

    def __init__(self, exclude: Sequence[str], use_defaults_from: str) -> None:
        self._exclude = java_pattern(exclude, "config.properties.exclude")
        self._source_defaults = use_defaults_from == "source"

    def why_not(self, name: str) -> str | None:
        """The reason for leaving a topic config out; None when it is synced."""
        excluded = self._exclude is not None and self._exclude.fullmatch(name) is not None
        return "in config.properties.exclude" if excluded else None

    def should_replicate_config_property(self, name: str) -> bool:
        """Whether the topic config is synced."""
        return self.why_not(name) is None

    def should_replicate_source_default(self, name: str) -> bool:  # noqa: ARG002 - the same answer for every name, as in MM2
        """Whether a config that has the built-in default at the source is written to the remote topic."""
        return self._source_defaults
