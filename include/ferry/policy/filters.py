"""The interfaces of filters: which topics, groups and topic configs a flow replicates (KIP-382, KIP-894).

A filter has MM2's method; a rule also has `why_not(name)`, the reason that reports show. `Flow` makes the rules that its config names.
"""

from __future__ import annotations

from typing import Protocol


class TopicFilter(Protocol):
    """Decides which topics are copied (KIP-382). May also have `configure(properties)`, as ReplicationPolicy."""

    def should_replicate_topic(self, name: str, /) -> bool: ...


class GroupFilter(Protocol):
    """Decides which consumer groups are checkpointed (KIP-382)."""

    def should_replicate_group(self, name: str, /) -> bool: ...


class ConfigPropertyFilter(Protocol):
    """Decides which topic configs are synced (KIP-382, KIP-894)."""

    def should_replicate_config_property(self, name: str, /) -> bool: ...
    def should_replicate_source_default(self, name: str, /) -> bool: ...


class TopicRule(TopicFilter, Protocol):
    """A topic filter that gives reasons."""

    def why_not(self, name: str, /) -> str | None: ...


class GroupRule(GroupFilter, Protocol):
    """A group filter that gives reasons."""

    def why_not(self, name: str, /) -> str | None: ...


class ConfigPropertyRule(ConfigPropertyFilter, Protocol):
    """A filter of topic configs that gives reasons."""

    def why_not(self, name: str, /) -> str | None: ...
