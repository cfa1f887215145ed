"""Policies and filters as users write them, good ones and bad ones."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.policy.naming import ReplicationPolicy


class Suffix(ReplicationPolicy):
    """`<topic><mark><alias>`; the mark is a property of its own."""

    mark = "-from-"

    def configure(self, properties: Mapping[str, str]) -> None:
        self.mark = properties.get("replication.policy.suffix.mark", self.mark)
        self.seen = dict(properties)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}{self.mark}{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        return topic.rpartition(self.mark)[2] if self.mark in topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition(self.mark)[0] if self.mark in topic else None


class OneName(Suffix):
    """Merges everything, which no flow may do."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:  # noqa: ARG002 - that is the mistake
        return "everything"


class Loose:
    """Derives from nothing, and is complete all the same."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}/{topic}".replace("/", "-")

    def topic_source(self, topic: str) -> str | None:  # noqa: ARG002 - knows no remote topics
        return None

    def upstream_topic(self, topic: str) -> str | None:  # noqa: ARG002 - as above
        return None


class Same(Suffix):
    """Leaves names alone, and does not say so."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:  # noqa: ARG002 - that is the point
        return topic


class SaysSame(Same):
    @property
    def renames(self) -> bool:
        return False


class Unfinished(ReplicationPolicy):
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{topic}"

    def upstream_topic(self, topic: str) -> str | None:
        return topic


class Explodes(Suffix):
    def __init__(self) -> None:
        raise ValueError("no licence")


class ExplodesConfigured(Suffix):
    def configure(self, properties: Mapping[str, str]) -> None:
        raise KeyError(properties["source.cluster.alias"])


class GivesNumbers(Suffix):
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return len(source_alias + topic)  # type: ignore[return-value]


class FailsOnOrders(Suffix):
    def topic_source(self, topic: str) -> str | None:
        raise IndexError(topic)


not_a_class = Suffix()


class OnlyShort:
    """Filters by length; `most` from the properties of all three filters."""

    most = 5

    def configure(self, properties: Mapping[str, str]) -> None:
        self.most = int(properties.get("topic.filter.most", self.most))

    def should_replicate_topic(self, name: str) -> bool:
        return len(name) <= self.most

    def should_replicate_group(self, name: str) -> bool:
        return len(name) <= self.most

    def should_replicate_config_property(self, name: str) -> bool:
        return name.startswith("retention")

    def should_replicate_source_default(self, name: str) -> bool:
        return name == "retention.ms"


class NoTruth(OnlyShort):
    def should_replicate_topic(self, name: str) -> bool:
        return name  # type: ignore[return-value]
