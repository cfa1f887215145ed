"""The properties of a flow that are in force, for people: each value as written, and the key and line that it comes from (pure).

If a property may be secret, they hold no value, only a reference to where the secret is kept. They hold nothing of an Airflow connection.
All other values are Secrets too, as everywhere in a configuration: logs do not show them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ferry.config.connections import CONNECTION_KEY
from ferry.config.flow import Flow
from ferry.config.keys import CLASS_KEYS, TOP_LEVEL_CLASS_KEYS, is_custom_key
from ferry.config.problems import without_secrets
from ferry.config.properties import Entry
from ferry.config.providers import is_reference
from ferry.config.registry import CLIENT_PROPERTIES, CLUSTER_PROPERTIES, FLOW_PROPERTIES, REGISTRY_PROPERTIES
from ferry.config.registry.property import Effect, Property
from ferry.config.secret import HIDDEN, Secret
from ferry.config.sources import ClientRole, Pair, Setting, Sources

OF_CONNECTION = "[of the Airflow connection]"
# In a URL: user and password, and the values of its query.
_SECRETS_OF_URL = re.compile(r"(://)\S+(?=@)|([?&][^=&\s]+=)[^&\s]+")


@dataclass(frozen=True)
class InForce:
    """`of`: the flow, or the cluster whose clients have it. `key`: as written; empty: `value` is the default. `line` 0: not in the file."""

    of: str
    name: str
    value: Secret
    key: str
    line: int
    meaning: str


def in_force(flow: Flow, sources: Sources) -> tuple[InForce, ...]:
    """The flow's properties, then those of its clusters and their clients. Those that a client has by default are left out."""
    pair = Pair(flow.source.alias, flow.target.alias)
    return (*_of_flow(pair, sources), *_of_clusters(flow, sources.entries))


def _of_flow(pair: Pair, sources: Sources) -> Iterator[InForce]:
    for name, known in FLOW_PROPERTIES.items():
        if known.effect is not Effect.HONOURED:
            continue
        entry = sources.of_flow(pair, name)
        default = InForce(pair.name, name, Secret(known.default or ""), "", 0, known.meaning)
        yield default if entry is None else _written(pair.name, known, entry)
    # Properties that only custom classes know. Only the classes know whether they are secret.
    for key, entry in sources.entries.items():
        name = key.removeprefix(f"{pair.name}.")
        if is_custom_key(name, TOP_LEVEL_CLASS_KEYS if key == name else CLASS_KEYS):
            yield InForce(pair.name, name, Secret(_reference(entry.value)), entry.key, entry.line, "for a custom class")


def _of_clusters(flow: Flow, entries: Mapping[str, Entry]) -> Iterator[InForce]:
    for cluster in (flow.source, flow.target):
        for name, known in {**CLUSTER_PROPERTIES, **REGISTRY_PROPERTIES}.items():
            if (entry := entries.get(f"{cluster.alias}.{name}")) and name not in FLOW_PROPERTIES:
                yield _written(cluster.alias, known, entry)
        found: dict[Setting, list[str]] = {}
        for role in ClientRole:
            for setting in cluster.of_role(role).values():
                found.setdefault(setting, []).append(role.value)
        for setting, roles in found.items():
            known = CLIENT_PROPERTIES[setting.name]
            if known.effect is not Effect.HONOURED:
                continue
            entry = Entry(setting.key, setting.value.reveal(), setting.line)
            of = cluster.alias if len(roles) == len(known.roles) else f"{cluster.alias} ({', '.join(roles)})"
            yield _written(of, known, entry)


def _written(of: str, known: Property, entry: Entry) -> InForce:
    if known.name != CONNECTION_KEY and entry.key.endswith(f".{CONNECTION_KEY}"):
        value = OF_CONNECTION
    elif known.kind.secret or known.name.endswith(".args"):
        value = _reference(entry.value)
    else:
        value = _SECRETS_OF_URL.sub(lambda found: (found[1] or found[2]) + HIDDEN, without_secrets(entry.value.strip()))
    return InForce(of, known.name, Secret(value), entry.key, entry.line, known.meaning)


def _reference(text: str) -> str:
    """The text if it only says where a secret is kept."""
    return text.strip() if is_reference(text) else HIDDEN
