"""Recognises every key of a file, or finds the nearest that it may have been meant as.

A key may be read in several ways, because aliases are free texts (`A` and `A.b` may both be aliases): it is known if one way fits.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ferry.config.providers import is_provider_key
from ferry.config.registry import (
    CLIENT_PROPERTIES,
    CLUSTER_PROPERTIES,
    FILE_PROPERTIES,
    FLOW_PROPERTIES,
    WORKER_PROPERTIES,
    Effect,
    Property,
    Scope,
)
from ferry.config.registry.flows import NO_CONNECT
from ferry.config.registry.kinds import STRING
from ferry.config.sources import ClientRole, Pair

ROLES = tuple(role.value for role in ClientRole)
_TRANSFORMS = FLOW_PROPERTIES["transforms"]
_TOPIC_CREATION = Property("topic.creation", STRING, None, "topics made by Connect", Scope.FLOW_ONLY, Effect.NO_EFFECT, NO_CONNECT)
_PROVIDER = FILE_PROPERTIES["config.providers.<name>.param.<parameter>"]


@dataclass(frozen=True)
class Recognised:
    """What a key means. `idle` says why it has no effect where it stands; empty when it has."""

    property: Property
    idle: str = ""


@dataclass(frozen=True)
class Keys:
    """The keys that a file with these clusters and config providers may hold."""

    aliases: tuple[str, ...]
    providers: tuple[str, ...] = ()

    @property
    def pairs(self) -> Iterator[Pair]:
        """Every source with every other target."""
        return (Pair(source, target) for source in self.aliases for target in self.aliases if source != target)

    def recognise(self, key: str) -> Recognised | None:
        """The first reading of `key` that has an effect, else the first at all, else None."""
        readings = [reading for reading in self._readings(key) if reading is not None]
        return next((reading for reading in readings if not reading.idle), readings[0] if readings else None)

    def nearest(self, key: str) -> str | None:
        """A key that `key` may have been meant as."""
        prefix, rest, names = self._closest_scope(key)
        if prefix is None:
            return self._nearest_alias(key) or _closest(key, names)
        role, dot, name = rest.partition(".")
        if dot and role in ROLES:
            match = _closest(name, [known.name for known in CLIENT_PROPERTIES.values() if role in known.roles])
            return f"{prefix}{role}.{match}" if match else None
        match = _closest(rest, names)
        return f"{prefix}{match}" if match else None

    def _readings(self, key: str) -> Iterator[Recognised | None]:
        for pair in self.pairs:
            if key.startswith(f"{pair.name}."):
                yield _flow_key(pair, key.removeprefix(f"{pair.name}."))
        for alias in self.aliases:
            if key.startswith(f"{alias}."):
                yield _cluster_key(alias, key.removeprefix(f"{alias}."))
        yield Recognised(_PROVIDER) if is_provider_key(key, self.providers) else _top_level_key(key)

    def _closest_scope(self, key: str) -> tuple[str | None, str, Iterable[str]]:
        flow_prefix = max((f"{pair.name}." for pair in self.pairs if key.startswith(f"{pair.name}.")), key=len, default=None)
        if flow_prefix is not None:
            return flow_prefix, key.removeprefix(flow_prefix), FLOW_PROPERTIES
        cluster_prefix = max((f"{alias}." for alias in self.aliases if key.startswith(f"{alias}.")), key=len, default=None)
        if cluster_prefix is not None:
            names = [known.name for known in CLIENT_PROPERTIES.values() if known.login] + list(CLUSTER_PROPERTIES)
            return cluster_prefix, key.removeprefix(cluster_prefix), names + [f"{role}." for role in ROLES]
        names = [
            *FILE_PROPERTIES,
            *FLOW_PROPERTIES,
            *(known.name for known in CLIENT_PROPERTIES.values() if known.login),
            *WORKER_PROPERTIES,
        ]
        return None, key, names

    def _nearest_alias(self, key: str) -> str | None:
        """For keys with a known name behind an unknown cluster or flow."""
        prefixes: Mapping[str, Mapping[str, Property]] = {
            **{alias: {**CLIENT_PROPERTIES, **CLUSTER_PROPERTIES} for alias in self.aliases},
            **{pair.name: FLOW_PROPERTIES for pair in self.pairs},
        }
        for position in (index for index, character in enumerate(key) if character == "."):
            written, name = key[:position], key[position + 1 :]
            known = [prefix for prefix, names in prefixes.items() if name in names or name.partition(".")[0] in ROLES]
            matches = difflib.get_close_matches(written, known, n=1, cutoff=0.5)
            if matches and not written.startswith(("config.providers", "ferry")):
                return f"{matches[0]}.{name}"
        return None


def _closest(name: str, names: Iterable[str]) -> str | None:
    matches = difflib.get_close_matches(name, [known for known in names if "<" not in known], n=1)
    return matches[0] if matches else None


def _flow_key(pair: Pair, rest: str) -> Recognised | None:
    if rest in FLOW_PROPERTIES:
        return Recognised(FLOW_PROPERTIES[rest])
    if rest.startswith(("transforms.", "predicates.")):
        return Recognised(_TRANSFORMS)
    if rest.startswith("topic.creation."):
        return Recognised(_TOPIC_CREATION)
    for prefix in ("source.cluster.", "target.cluster."):
        known = CLIENT_PROPERTIES.get(rest.removeprefix(prefix))
        if rest.startswith(prefix) and known is not None:
            side = prefix.partition(".")[0]
            return Recognised(
                known, "" if known.login else f"MM2 drops it here: write {getattr(pair, side)}.consumer.{known.name} or the like"
            )
    for prefix in ("source.", "target.", ""):
        if rest.startswith(prefix):
            reading = _role_key(rest.removeprefix(prefix))
            if reading is not None:
                return reading
    if rest.startswith("producer.override."):
        return _role_key("producer." + rest.removeprefix("producer.override."))
    if rest in CLIENT_PROPERTIES:
        return Recognised(CLIENT_PROPERTIES[rest], f"MM2 drops it here: write it for a cluster, as {pair.source}.{rest}")
    if rest in WORKER_PROPERTIES:
        return Recognised(WORKER_PROPERTIES[rest])
    return None


def _cluster_key(alias: str, rest: str) -> Recognised | None:
    if rest in CLUSTER_PROPERTIES:
        return Recognised(CLUSTER_PROPERTIES[rest])
    known = CLIENT_PROPERTIES.get(rest)
    if known is not None and known.login:
        return Recognised(known)
    reading = _role_key(rest)
    if reading is not None:
        return reading
    if known is not None:
        role = next(role for role in ROLES[::-1] if role in known.roles)
        return Recognised(known, "" if rest in WORKER_PROPERTIES else f"MM2's clients drop it here: write {alias}.{role}.{rest}")
    if rest in WORKER_PROPERTIES:
        return Recognised(WORKER_PROPERTIES[rest])
    if rest in FLOW_PROPERTIES:
        return Recognised(FLOW_PROPERTIES[rest], "it belongs to a flow: write it at the top level or behind <source>-><target>.")
    return None


def _top_level_key(key: str) -> Recognised | None:
    if key in FILE_PROPERTIES:
        return Recognised(FILE_PROPERTIES[key])
    if key in FLOW_PROPERTIES:
        known = FLOW_PROPERTIES[key]
        return Recognised(known, f"MM2 drops it at the top level: write <source>-><target>.{key}" if known.scope is Scope.FLOW_ONLY else "")
    if key in CLIENT_PROPERTIES and CLIENT_PROPERTIES[key].login:
        return Recognised(CLIENT_PROPERTIES[key])
    if key in WORKER_PROPERTIES:
        return Recognised(WORKER_PROPERTIES[key])
    if key.startswith(("transforms.", "predicates.", "topic.creation.")):
        return Recognised(_TOPIC_CREATION, "MM2 drops it at the top level")
    reading = _role_key(key)
    name = key.partition(".")[2] if reading is not None else key
    known_client = CLIENT_PROPERTIES.get(name)
    if known_client is None:
        return None
    role = key.partition(".")[0] if reading is not None else sorted(known_client.roles)[0]
    return Recognised(known_client, f"MM2 drops it at the top level: write <cluster>.{role}.{name}")


def _role_key(rest: str) -> Recognised | None:
    """`consumer.x`, `producer.x`, `admin.x`."""
    role, _, name = rest.partition(".")
    known = CLIENT_PROPERTIES.get(name) if role in ROLES else None
    return Recognised(known) if known is not None and role in known.roles else None
