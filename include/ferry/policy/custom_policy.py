"""A replication policy of a user's own, behind a guard: what it raises or answers wrongly is told with its name and the topic."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.errors import ConfigError
from ferry.policy.custom_classes import answer, custom_object
from ferry.policy.replication_policy import ReplicationPolicy

REQUIRED = ("format_remote_topic", "topic_source", "upstream_topic")
_NAME = (str,)
_NAME_OR_NONE = (str, type(None))
_TRUTH = (bool,)


class CustomReplicationPolicy(ReplicationPolicy):
    """Asks an object of the class at `path`; ConfigError for whatever goes wrong in there."""

    def __init__(self, path: str, properties: Mapping[str, str]) -> None:
        self._path = path
        self._own = custom_object(path, REQUIRED, properties, ReplicationPolicy)

    @property
    def renames(self) -> bool:
        """Whether remote names differ from the source's."""
        return bool(self._own.renames)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The remote topic's name."""
        name: str = answer(self._path, "format_remote_topic", self._own, source_alias, topic, wants=_NAME)
        if not name:
            raise ConfigError(f"{self._path}: format_remote_topic({source_alias!r}, {topic!r}) gave an empty name")
        return name

    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that a remote topic came from."""
        alias: str | None = answer(self._path, "topic_source", self._own, topic, wants=_NAME_OR_NONE)
        return alias

    def upstream_topic(self, topic: str) -> str | None:
        """The name one hop upstream."""
        name: str | None = answer(self._path, "upstream_topic", self._own, topic, wants=_NAME_OR_NONE)
        return name

    def original_topic(self, topic: str) -> str:
        """The name at the very first cluster."""
        return self._name("original_topic", topic)

    def heartbeats_topic(self) -> str:
        """The topic that heartbeats are written to."""
        return self._name("heartbeats_topic")

    def offset_syncs_topic(self, alias: str) -> str:
        """MM2's offset-syncs topic for the alias of the other cluster."""
        return self._name("offset_syncs_topic", alias)

    def checkpoints_topic(self, alias: str) -> str:
        """MM2's checkpoints topic for a source alias."""
        return self._name("checkpoints_topic", alias)

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether the topic holds heartbeats."""
        return self._truth("is_heartbeats_topic", topic)

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether the topic holds checkpoints."""
        return self._truth("is_checkpoints_topic", topic)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether the topic is one of MM2's own."""
        return self._truth("is_mm2_internal_topic", topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Whether the topic is never copied."""
        return self._truth("is_internal_topic", topic)

    def _name(self, method: str, *arguments: str) -> str:
        name: str = answer(self._path, method, self._own, *arguments, wants=_NAME)
        return name

    def _truth(self, method: str, topic: str) -> bool:
        truth: bool = answer(self._path, method, self._own, topic, wants=_TRUTH)
        return truth
