"""Which topics, groups and topic configs a flow replicates: MM2's filter interfaces, and the one place that makes each of them.

`topic_filter`, `group_filter` and `config_property_filter` give what the flow's `*.filter.class` names. Besides MM2's method each of
them has `why_not(name)`, the reason that reports show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ferry.policy.default_filters import DefaultConfigPropertyFilter, DefaultGroupFilter, DefaultTopicFilter
from ferry.policy.java_patterns import java_pattern
from ferry.policy.own_classes import is_own
from ferry.policy.own_filters import OwnConfigPropertyFilter, OwnGroupFilter, OwnTopicFilter

if TYPE_CHECKING:
    from ferry.config import Flow

__all__ = [
    "ConfigPropertyFilter",
    "ConfigPropertyRule",
    "GroupFilter",
    "GroupRule",
    "TopicFilter",
    "TopicRule",
    "config_property_filter",
    "group_filter",
    "java_pattern",
    "topic_filter",
]


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


def topic_filter(flow: Flow) -> TopicRule:
    """The flow's topic filter. ConfigError for one of a user's own that cannot be made."""
    own = flow.mirroring.topic_filter_class
    if is_own(own):
        return OwnTopicFilter(own, flow.class_properties)
    return DefaultTopicFilter(flow.topics, flow.topics_exclude)


def group_filter(flow: Flow) -> GroupRule:
    """The flow's group filter. ConfigError as of topic_filter."""
    own = flow.mirroring.group_filter_class
    if is_own(own):
        return OwnGroupFilter(own, flow.class_properties)
    return DefaultGroupFilter(flow.mirroring.groups, flow.mirroring.groups_exclude)


def config_property_filter(flow: Flow) -> ConfigPropertyRule:
    """The flow's filter of topic configs. ConfigError as of topic_filter."""
    own = flow.mirroring.config_property_filter_class
    if is_own(own):
        return OwnConfigPropertyFilter(own, flow.class_properties)
    return DefaultConfigPropertyFilter(flow.config_properties_exclude, flow.use_defaults_from)
