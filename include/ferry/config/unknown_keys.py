"""Judges keys that neither MM2 nor Kafka's clients nor Ferry know.

MM2 and the clients ignore such keys. Ferry refuses a key only if a person may have written it to decide which records are copied, or where
to. These are misspelt keys, keys of flows that the file does not have, and keys whose words choose topics or groups in MM2, MirrorMaker 1,
Strimzi, Confluent's Replicator or uReplicator. All other keys have no effect.
"""

import difflib
import re
from dataclasses import dataclass

from ferry.config.keys import CLUSTER_KEYS, FLOW_KEYS, ROLES, SIDES, Keys, closest_ignoring_case, closest_key
from ferry.config.registry import CLIENT_PROPERTIES, FLOW_PROPERTIES
from ferry.config.registry.property import Effect

NOT_KNOWN = "is not a known property"
# A key that differs from a known one by at most this many letters is misspelt. One that differs by more is another key.
_TYPING_ERRORS = 2
# The properties that choose records or name remote topics.
_CHOICES = tuple(
    name for name in FLOW_PROPERTIES if name.startswith(("topics", "groups", "replication.policy")) or name.endswith("filter.class")
)
_CHOOSING_WORDS = frozenset({"blacklist", "whitelist", "regex", "rename", "include", "exclude"})
_WITH_TOPICS = frozenset({"list", "lists", "pattern", "patterns", "filter", "filters"})
# Their keys are no misspelt keys of MM2, even if the words are similar.
_VENDORS = ("confluent.",)
_OPPOSITES = {"topics.include": "topics", "groups.include": "groups"}
_QUOTES = re.compile(r"[\"']")


@dataclass(frozen=True)
class Judgement:
    """`what` is wrong with the key; `nearest`: the known key that may be meant; `refused`: whether it may be meant to choose records."""

    what: str = NOT_KNOWN
    nearest: str | None = None
    refused: bool = False


def judge(keys: Keys, key: str, value: str, written: str) -> Judgement:
    """What an unknown key may mean. `written`: the key in the file, if that has another form than mm2.properties."""
    if misplaced := _misplaced(keys, key, value, written):
        return Judgement(misplaced, refused=True)
    stray = _stray_prefix(keys, key) if key == written else None
    if stray is not None:
        owner = closest_ignoring_case(stray, [prefix.removesuffix(".") for prefix, _ in keys.scopes()])
        what = f"{stray} is neither a cluster of this file ({', '.join(keys.aliases)}) nor a flow between two of them"
        flow = "->" in stray or key.removeprefix(f"{stray}.") in _CHOICES
        nearest = owner and owner + key.removeprefix(stray)
        return Judgement(what, nearest, refused=flow or closest_ignoring_case(stray, keys.aliases) is not None)
    return _near(keys, key)


def _misplaced(keys: Keys, key: str, value: str, written: str) -> str:
    """What is wrong with `key`, if its form shows what its writer meant; empty for all others."""
    if key in keys.aliases or ("->" in key and "." not in key.rpartition("->")[2]):
        return (
            f"{NOT_KNOWN}: a key ends at its first blank, colon or equals sign, and the rest of the line is its value; write a flow's "
            "property as A->B.<property>, without blanks"
        )
    if any(key.startswith(f"{alias}->{alias}.") for alias in keys.aliases):
        return "is a flow from a cluster to itself"
    if any(key == f"{alias}.alias" and value.strip() != alias for alias in keys.aliases):
        return "gives the cluster another alias, which MM2 would write into the names of topics: use one alias, or remove this key"
    if (bare := _QUOTES.sub("", key)) != key and keys.recognise(bare) is not None:
        return f"{NOT_KNOWN}: quotes are part of a key; write {bare}"
    if meant := _of_connector(keys, written):
        return f"{NOT_KNOWN}: write {meant}"
    return "configures no provider that config.providers names" if written.startswith("config.providers.") else ""


def _of_connector(keys: Keys, key: str) -> str:
    """The key to write instead of one of a connector's config; empty for all others."""
    for side in SIDES:
        name = key.removeprefix(f"{side}.").removeprefix("cluster.")
        if key.startswith(f"{side}.") and side not in keys.aliases and (name in CLIENT_PROPERTIES or name in CLUSTER_KEYS):
            return f"<{side}>.{name}"
    return f"<cluster>.{key.removeprefix('remote.')}" if key.startswith("remote.admin.") else ""


def _stray_prefix(keys: Keys, key: str) -> str | None:
    """The first part of `key` if a known property follows it, so that the part should be a cluster or flow; None otherwise."""
    if keys.scope(key)[0]:
        return None
    for position in (index for index, character in enumerate(key) if character == "."):
        prefix, name = key[:position], key[position + 1 :]
        if prefix not in ROLES and (name in (FLOW_KEYS if "->" in prefix else CLUSTER_KEYS) or name in _CHOICES):
            return prefix
    return None


def _near(keys: Keys, key: str) -> Judgement:
    prefix, known = keys.scope(key)
    name = key.removeprefix(prefix)
    plain = _plain(name)
    own = plain.startswith("fer")
    candidates = [entry for entry in known if "<" not in entry and (own or not entry.startswith("ferry."))]
    nearest = _OPPOSITES.get(plain) or closest_key(plain, candidates)
    suggested = None
    if nearest is not None:
        reading = keys.recognise(prefix + nearest)
        suggested = prefix + ((reading and reading.property.successor) or nearest)
        if reading is not None and reading.property.effect is not Effect.NO_EFFECT and _typing_errors(plain, nearest) <= _TYPING_ERRORS:
            return Judgement(NOT_KNOWN, suggested, refused=True)
    of_client = plain.removeprefix("source.").removeprefix("target.").startswith(tuple(f"{role}." for role in ROLES))
    return Judgement(NOT_KNOWN, suggested, refused=plain.startswith("ferry") or (not of_client and _chooses(plain)))


def _chooses(name: str) -> bool:
    """Whether the words of a name choose topics or groups, or name remote topics."""
    if name.startswith(_VENDORS):
        return False
    words = name.split(".")
    of_topics = [word for word in words if word.startswith(("topic", "group"))]
    ends = any(choice.endswith(f".{name}") for choice in _CHOICES if "." in name)
    chosen = words[0].startswith(("topics", "groups")) or name.startswith("replication.policy")
    return chosen or ends or not _CHOOSING_WORDS.isdisjoint(words) or (bool(of_topics) and not _WITH_TOPICS.isdisjoint(words))


def _plain(name: str) -> str:
    """The name in the form of properties: `TOPICS_EXCLUDE` and `topics-exclude` become topics.exclude. Names of MM2 have few dashes."""
    lowered = name.casefold().replace("_", ".")
    return lowered if "offset-syncs" in lowered else lowered.replace("-", ".")


def _typing_errors(text: str, other: str) -> int:
    """How many letters were added, left out or replaced; two for each pair that was exchanged."""
    changes = difflib.SequenceMatcher(a=text, b=other, autojunk=False).get_opcodes()
    return sum(max(end - start, other_end - other_start) for kind, start, end, other_start, other_end in changes if kind != "equal")
