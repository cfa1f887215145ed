"""Finds the known key that an unknown, probably misspelt key may mean."""

import difflib
from collections.abc import Iterable

from ferry.config.keys import ROLES, SIDES, Keys
from ferry.config.registry import CLIENT_PROPERTIES, CLUSTER_PROPERTIES, FILE_PROPERTIES, FLOW_PROPERTIES, WORKER_PROPERTIES

_LOGIN = [known.name for known in CLIENT_PROPERTIES.values() if known.login]
_OF_ROLES = [f"{role}.{known.name}" for role in ROLES for known in CLIENT_PROPERTIES.values() if role in known.roles]
_TOP_LEVEL = [name for name in (*FILE_PROPERTIES, *FLOW_PROPERTIES, *_LOGIN, *WORKER_PROPERTIES) if "<" not in name]
_CLUSTER = [*_LOGIN, *CLUSTER_PROPERTIES, *_OF_ROLES]
_FLOW = [*FLOW_PROPERTIES, *_OF_ROLES, *(f"{side}.{name}" for side in SIDES for name in _OF_ROLES)]
# Less similar names are no useful suggestion: an unknown alias of two letters would be "near" any other.
_ALIAS_LIKENESS = 0.6


def nearest_key(keys: Keys, key: str) -> str | None:
    """The known key of this file that is most similar to `key`; None if none is similar."""
    scopes = [(f"{pair.name}.", _FLOW) for pair in keys.pairs] + [(f"{alias}.", _CLUSTER) for alias in keys.aliases]
    fitting = [scope for scope in scopes if key.startswith(scope[0])]
    prefix, names = max(fitting, key=lambda scope: len(scope[0]), default=("", _TOP_LEVEL))
    if not prefix:
        stray = stray_prefix(keys, key)
        if stray is not None:
            owner = _closest_ignoring_case(stray, [prefix.removesuffix(".") for prefix, _ in scopes])
            return owner and owner + key.removeprefix(stray)
    match = difflib.get_close_matches(key.removeprefix(prefix), names, n=1)
    return prefix + match[0] if match else None


def nearest_name(name: str, names: Iterable[str]) -> str:
    """`; did you mean X?` with the one of `names` (flows, topics, clusters) that is most similar to `name`; empty if none is."""
    found = _closest_ignoring_case(name, list(names))
    return f"; did you mean {found}?" if found else ""


def stray_prefix(keys: Keys, key: str) -> str | None:
    """The first part of `key` if a known property follows it, so that the part should be a cluster or flow; None otherwise."""
    for position in (index for index, character in enumerate(key) if character == "."):
        prefix, name = key[:position], key[position + 1 :]
        known = _FLOW if "->" in prefix else _CLUSTER
        if name in known and prefix not in (*keys.aliases, *ROLES):
            return prefix
    return None


def _closest_ignoring_case(name: str, names: list[str]) -> str | None:
    folded = {known.casefold(): known for known in names}
    match = next(iter(difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=_ALIAS_LIKENESS)), None)
    return match and folded[match]
