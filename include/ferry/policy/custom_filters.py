"""Filters of a user's own, behind a guard: what they raise or answer wrongly is told with their name, and every no has a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferry.policy.custom_classes import answer, custom_object

_TRUTH = (bool,)


class _Own:
    """Asks an object of the class at `path`; ConfigError for whatever goes wrong in there."""

    methods: tuple[str, ...]

    def __init__(self, path: str, properties: Mapping[str, str]) -> None:
        self._path = path
        self._own: Any = custom_object(path, self.methods, properties)

    def why_not(self, name: str) -> str | None:
        """The reason for leaving `name` out; None when it is in."""
        return None if self._truth(self.methods[0], name) else f"left out by {self._path}"

    def _truth(self, method: str, name: str) -> bool:
        truth: bool = answer(self._path, method, self._own, name, wants=_TRUTH)
        return truth


class CustomTopicFilter(_Own):
    """`topic.filter.class`."""

    methods = ("should_replicate_topic",)

    def should_replicate_topic(self, name: str) -> bool:
        """Whether the topic is copied."""
        return self._truth("should_replicate_topic", name)


class CustomGroupFilter(_Own):
    """`group.filter.class`."""

    methods = ("should_replicate_group",)

    def should_replicate_group(self, name: str) -> bool:
        """Whether the group is checkpointed."""
        return self._truth("should_replicate_group", name)


class CustomConfigPropertyFilter(_Own):
    """`config.property.filter.class`."""

    methods = ("should_replicate_config_property", "should_replicate_source_default")

    def should_replicate_config_property(self, name: str) -> bool:
        """Whether the topic config is synced."""
        return self._truth("should_replicate_config_property", name)

    def should_replicate_source_default(self, name: str) -> bool:
        """Whether a config that has the built-in default at the source is written to the remote topic."""
        return self._truth("should_replicate_source_default", name)
