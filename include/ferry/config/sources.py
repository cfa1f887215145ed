"""Which of several keys wins, by MM2's precedence.

For a property of a flow: `A->B.x`, then (for a few of Ferry's properties) the cluster's `A.x`, then top-level `x`. For a client property,
here of the consumer of flow A->B's source, the first of these that is set:

    A->B.source.consumer.x   A.consumer.x   A.x *   (the Airflow connection) *   x *   A->B.consumer.x   A->B.source.cluster.x *

A key with * gives only bootstrap.servers, security.protocol, ssl.* and sasl.* (MirrorMakerConfig.clusterProps, MirrorConnectorConfig). So a
cluster's `A.consumer.x` wins over the flow's `A->B.consumer.x`. For the target's producer `A->B.producer.override.x` wins over all others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from ferry.config.properties import Entry
from ferry.config.registry import CLIENT_PROPERTIES, FLOW_PROPERTIES, REGISTRY_PROPERTIES
from ferry.config.registry.property import Property, Scope
from ferry.config.registry.schemas import REGISTRY_PREFIX
from ferry.config.secret import Secret


class ClientRole(Enum):
    """A kind of Kafka client; the value is its prefix in the file."""

    CONSUMER = "consumer"
    PRODUCER = "producer"
    ADMIN = "admin"


@dataclass(frozen=True)
class Setting:
    """One effective client property: its Kafka name, and where its value came from."""

    name: str
    key: str
    line: int
    value: Secret
    path: Path | None = None


@dataclass(frozen=True)
class Pair:
    source: str
    target: str

    @property
    def name(self) -> str:
        """As in the file: `A->B`."""
        return f"{self.source}->{self.target}"

    def side(self, alias: str) -> str:
        return "source" if alias == self.source else "target"


@dataclass(frozen=True)
class Sources:
    """All entries of a file, and the settings that Airflow connections give (by alias, then by Kafka's name)."""

    entries: Mapping[str, Entry]
    connections: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)

    def of_flow(self, pair: Pair, name: str) -> Entry | None:
        """The entry that gives property `name` of a flow; None if it is not set."""
        known = FLOW_PROPERTIES[name]
        keys = [f"{pair.name}.{name}"]
        if known.of_target:
            keys.append(f"{pair.target}.{name}")
        if known.scope is not Scope.FLOW_ONLY:
            keys.append(name)
        return next((self.entries[key] for key in keys if key in self.entries), None)

    def of_client(self, alias: str, role: ClientRole, pair: Pair | None) -> tuple[Setting, ...]:
        """Effective client properties of a cluster, as its side of `pair` or (None) by itself."""
        found = (self._client_setting(alias, role, pair, known) for known in CLIENT_PROPERTIES.values())
        return tuple(setting for setting in found if setting is not None)

    def of_registry(self, alias: str) -> tuple[Setting, ...]:
        """The properties of a cluster's schema registry, by their names after REGISTRY_PREFIX."""
        found = ((name, self.entries.get(f"{alias}.{name}")) for name in REGISTRY_PROPERTIES)
        return tuple(
            Setting(name.removeprefix(REGISTRY_PREFIX), entry.key, entry.line, Secret(entry.value), entry.path)
            for name, entry in found
            if entry is not None
        )

    def _client_setting(self, alias: str, role: ClientRole, pair: Pair | None, known: Property) -> Setting | None:
        for key in self._candidates(alias, role, pair, known):
            if key is None:
                if setting := self.connections.get(alias, {}).get(known.name):
                    return setting
            elif key in self.entries:
                entry = self.entries[key]
                return Setting(known.name, entry.key, entry.line, Secret(entry.value), entry.path)
        return None

    @staticmethod
    def _candidates(alias: str, role: ClientRole, pair: Pair | None, known: Property) -> Iterator[str | None]:
        """Keys from the strongest to the weakest; None stands for the connection."""
        name = known.name
        if role.value not in known.roles:
            return
        if pair is not None:
            side = pair.side(alias)
            if side == "target" and role is ClientRole.PRODUCER:
                yield f"{pair.name}.producer.override.{name}"
            yield f"{pair.name}.{side}.{role.value}.{name}"
        yield f"{alias}.{role.value}.{name}"
        if known.login:
            yield f"{alias}.{name}"
            yield None
            yield name
        if pair is not None:
            yield f"{pair.name}.{role.value}.{name}"
            if known.login:
                yield f"{pair.name}.{pair.side(alias)}.cluster.{name}"
