"""What a copier left on a target, as an independent client sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    ResourcePatternType,
    ResourceType,
)

SECONDS = 30.0
# Kafka's own, Connect's, and Ferry's: no copier of the other kind has them.
NOBODY_ELSES = ("__", "mm2-offsets.", "mm2-configs.", "mm2-status.", "mm2-ferry-")


@dataclass(frozen=True)
class Topic:
    """One topic: `config` holds what was set for it itself."""

    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Landscape:
    """Topics by name, and ACLs as texts."""

    topics: Mapping[str, Topic]
    acls: frozenset[str]

    def of(self, mark: str) -> Landscape:
        """What bears this mark."""
        topics = {name: topic for name, topic in self.topics.items() if mark in name}
        return Landscape(topics, frozenset(acl for acl in self.acls if mark in acl))


def look(settings: Mapping[str, str]) -> Landscape:
    """Ask the cluster that these librdkafka settings reach."""
    client = AdminClient(dict(settings))
    listing = client.list_topics(timeout=SECONDS).topics
    names = [name for name in listing if not name.startswith(NOBODY_ELSES)]
    answers = (
        client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name) for name in names], request_timeout=SECONDS)
        if names
        else {}
    )
    topics = {}
    for resource, answer in answers.items():
        entries = answer.result(SECONDS).values()
        own = {entry.name: entry.value for entry in entries if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
        partitions = listing[resource.name].partitions
        topics[resource.name] = Topic(len(partitions), len(partitions[0].replicas), own)
    everything = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
    bindings = client.describe_acls(everything, request_timeout=SECONDS).result(SECONDS)
    return Landscape(topics, frozenset(_text(binding) for binding in bindings))


def differences(mine: Landscape, theirs: Landscape) -> list[str]:
    """Every difference as a line; `mine` is Ferry's."""
    found = [
        f"topic {name}: only {'Ferry' if name in mine.topics else 'MM2'}" for name in sorted(mine.topics.keys() ^ theirs.topics.keys())
    ]
    found += [
        f"topic {name}: Ferry {mine.topics[name]}, MM2 {theirs.topics[name]}"
        for name in sorted(mine.topics.keys() & theirs.topics.keys())
        if mine.topics[name] != theirs.topics[name]
    ]
    found += [f"ACL {acl}: only Ferry" for acl in sorted(mine.acls - theirs.acls)]
    found += [f"ACL {acl}: only MM2" for acl in sorted(theirs.acls - mine.acls)]
    return found


def _text(binding: object) -> str:
    parts = (
        getattr(binding, name) for name in ("restype", "name", "resource_pattern_type", "principal", "host", "operation", "permission_type")
    )
    return " ".join(str(getattr(part, "name", part)) for part in parts)
