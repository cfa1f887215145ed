"""Recognises every key of a file (unknown_keys.py judges the others).

A key may have several readings, because aliases are free texts (`A` and `A.b` may both be aliases). It is known if one reading fits.
"""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ferry.config.providers import is_provider_key
from ferry.config.registry import (
    CLIENT_PROPERTIES,
    CLUSTER_PROPERTIES,
    FILE_PROPERTIES,
    FLOW_PROPERTIES,
    REGISTRY_PROPERTIES,
    WORKER_PROPERTIES,
)
from ferry.config.registry.flows import NO_CONNECT
from ferry.config.registry.kinds import STRING
from ferry.config.registry.property import Effect, Property, Scope
from ferry.config.sources import ClientRole, Pair

ROLES = tuple(role.value for role in ClientRole)
SIDES = ("source", "target")
_TRANSFORMS = FLOW_PROPERTIES["transforms"]
_TOPIC_CREATION = Property("topic.creation", STRING, None, "topics made by Connect", NO_CONNECT, Scope.FLOW_ONLY, Effect.NO_EFFECT)
# Properties that may name a custom Python class. At the top level MM2 passes on only the properties of the policy.
TOP_LEVEL_CLASS_KEYS = ("replication.policy.class",)
CLASS_KEYS = (*TOP_LEVEL_CLASS_KEYS, "topic.filter.class", "group.filter.class", "config.property.filter.class")
_CUSTOM = Property("(custom)", STRING, None, "for a custom class")
_PROVIDER = FILE_PROPERTIES["config.providers.<name>.param.<parameter>"]
# The properties that belong at each place, by the key behind its prefix.
_LOGIN = {known.name: known for known in CLIENT_PROPERTIES.values() if known.login}
_OF_ROLES = {f"{role}.{known.name}": known for role in ROLES for known in CLIENT_PROPERTIES.values() if role in known.roles}
TOP_LEVEL_KEYS = {**WORKER_PROPERTIES, **_LOGIN, **FLOW_PROPERTIES, **FILE_PROPERTIES}
CLUSTER_KEYS = {**_LOGIN, **CLUSTER_PROPERTIES, **REGISTRY_PROPERTIES, **_OF_ROLES}
FLOW_KEYS = {**FLOW_PROPERTIES, **_OF_ROLES, **{f"{side}.{name}": known for side in SIDES for name, known in _OF_ROLES.items()}}
# Less similar names are no useful suggestion: an unknown alias of two letters would be "near" any other.
_ALIAS_LIKENESS = 0.6
# An unknown key counts as misspelt if it is at least this similar to a known one.
_KEY_LIKENESS = 0.83  # topcis is that similar to topics


@dataclass(frozen=True)
class Recognised:
    """The meaning of a key. `idle`: why it has no effect in its place; empty if it has one."""

    property: Property
    idle: str = ""


@dataclass(frozen=True)
class Keys:
    """The keys that a file may hold. `custom_classes`: those of CLASS_KEYS that name a custom class, which may have own properties."""

    aliases: tuple[str, ...]
    providers: tuple[str, ...] = ()
    custom_classes: frozenset[str] = frozenset()

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(Pair(source, target) for source in self.aliases for target in self.aliases if source != target)

    def recognise(self, key: str) -> Recognised | None:
        """The first reading of `key` that has an effect, otherwise its first reading, otherwise None."""
        readings = [reading for reading in self._readings(key) if reading is not None]
        return next((reading for reading in readings if not reading.idle), readings[0] if readings else None)

    def older_form(self, key: str) -> str:
        """The key that replaced `key`, if that has KIP-382's form `cluster.A.…` or is `A.broker.list`; empty for all others."""
        for alias in self.aliases:
            name = key.removeprefix("cluster.").removeprefix(f"{alias}.").replace("broker.list", "bootstrap.servers")
            meant = f"{alias}.{name}"
            if key in {f"cluster.{alias}.{name}", f"cluster.{alias}.broker.list", f"{alias}.broker.list"} and self.recognise(meant):
                return meant
        return ""

    def scope(self, key: str) -> tuple[str, Iterable[str]]:
        """The prefix of the flow or cluster to which a key belongs (empty: none), and the names that may follow it."""
        fitting = [scope for scope in self.scopes() if key.startswith(scope[0])]
        return max(fitting, key=lambda scope: len(scope[0]), default=("", TOP_LEVEL_KEYS))

    def scopes(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Each prefix of this file, with the names that may follow it."""
        yield from ((f"{pair.name}.", FLOW_KEYS) for pair in self.pairs)
        yield from ((f"{alias}.", CLUSTER_KEYS) for alias in self.aliases)

    def _readings(self, key: str) -> Iterator[Recognised | None]:
        for pair in self.pairs:
            if key.startswith(f"{pair.name}."):
                rest = key.removeprefix(f"{pair.name}.")
                yield flow_key(pair, rest) or self._custom_key(rest)
        for alias in self.aliases:
            if key.startswith(f"{alias}."):
                yield cluster_key(alias, key.removeprefix(f"{alias}."))
        yield Recognised(_PROVIDER) if is_provider_key(key, self.providers) else top_level_key(key)
        yield self._custom_key(key, top_level=True)

    def _custom_key(self, rest: str, *, top_level: bool = False) -> Recognised | None:
        if not is_custom_key(rest, self.custom_classes):
            return None
        dropped = top_level and not is_custom_key(rest, TOP_LEVEL_CLASS_KEYS)
        return Recognised(_CUSTOM, f"MM2 drops it at the top level: write <source>-><target>.{rest}" if dropped else "")


def is_custom_key(name: str, class_keys: Iterable[str]) -> bool:
    """Whether a custom class that one of `class_keys` names gets property `name`, for example `replication.policy.x`."""
    return name not in FLOW_PROPERTIES and any(name.startswith(key.removesuffix("class")) for key in class_keys)


def flow_key(pair: Pair, rest: str) -> Recognised | None:
    """The reading of `A->B.<rest>`."""
    if rest.startswith(("transforms.", "predicates.")):
        return Recognised(_TRANSFORMS)
    if rest.startswith("topic.creation."):
        return Recognised(_TOPIC_CREATION)
    if found := FLOW_KEYS.get(rest) or WORKER_PROPERTIES.get(rest):
        return Recognised(found)
    if known := CLIENT_PROPERTIES.get(rest):
        role = _a_role(known)
        alias = pair.target if role == "producer" else pair.source
        where = f"{alias}.{rest}" if known.login else f"{alias}.{role}.{rest}"
        return Recognised(known, f"MM2 drops it here: write it for a cluster, as {where}")
    if overriding := _OF_ROLES.get(rest.replace("producer.override.", "producer.", 1)):
        return Recognised(overriding)
    side, _, name = rest.partition(".cluster.")
    of_side = CLIENT_PROPERTIES.get(name) if side in SIDES else None
    if of_side is None:
        return None
    return Recognised(of_side, "" if of_side.login else f"MM2 drops it here: write {pair.name}.{side}.{_a_role(of_side)}.{name}")


def cluster_key(alias: str, rest: str) -> Recognised | None:
    """The reading of `A.<rest>`."""
    if rest in CLUSTER_KEYS:
        return Recognised(CLUSTER_KEYS[rest])
    if known := CLIENT_PROPERTIES.get(rest):
        # Connect's workers share a few names with clients; as worker properties they have no effect.
        dropped = rest not in WORKER_PROPERTIES
        return Recognised(known, f"MM2's clients drop it here: write {alias}.{_a_role(known)}.{rest}" if dropped else "")
    if rest in WORKER_PROPERTIES:
        return Recognised(WORKER_PROPERTIES[rest])
    if rest in FLOW_PROPERTIES:
        return Recognised(FLOW_PROPERTIES[rest], "it belongs to a flow: write it at the top level or after <source>-><target>.")
    return None


def top_level_key(key: str) -> Recognised | None:
    """The reading of a key without a cluster or flow in front."""
    if known := TOP_LEVEL_KEYS.get(key):
        return Recognised(known, f"MM2 drops it at the top level: write <source>-><target>.{key}" if known.scope is Scope.FLOW_ONLY else "")
    if key.startswith(("transforms.", "predicates.", "topic.creation.")):
        return Recognised(_TOPIC_CREATION, "MM2 drops it at the top level")
    if key in _OF_ROLES:
        return Recognised(_OF_ROLES[key], f"MM2 drops it at the top level: write <cluster>.{key}")
    client = CLIENT_PROPERTIES.get(key)
    return None if client is None else Recognised(client, f"MM2 drops it at the top level: write <cluster>.{_a_role(client)}.{key}")


def _a_role(known: Property) -> str:
    """The role that advice names: the first that knows the property."""
    return next(role for role in ROLES if role in known.roles)


def nearest_name(name: str, names: Iterable[str]) -> str:
    """`; did you mean X?` with the one of `names` (flows, topics, clusters) that is most similar to `name`; empty if none is."""
    found = closest_ignoring_case(name, names)
    return f"; did you mean {found}?" if found else ""


def closest_key(name: str, names: Iterable[str]) -> str | None:
    """The key that was perhaps meant by `name`; None if no key is similar."""
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=_KEY_LIKENESS)), None)


def closest_ignoring_case(name: str, names: Iterable[str]) -> str | None:
    """The name that is most similar; None if none is similar enough to be meant."""
    folded = {known.casefold(): known for known in names}
    match = next(iter(difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=_ALIAS_LIKENESS)), None)
    return match and folded[match]
