"""Puts entries with older names under the names that replaced them, before anything else reads them.

Only the key of the mapping changes: an entry keeps the key that the person wrote, so messages quote it.
"""

from collections.abc import Mapping

from ferry.config.keys import Keys
from ferry.config.problems import Problems
from ferry.config.properties import Entry
from ferry.config.registry.property import Effect


def with_successors(entries: Mapping[str, Entry], keys: Keys, problems: Problems) -> dict[str, Entry]:
    """`entries` without older names. The new name wins, also at the top level, as in Kafka's ConfigUtils. Warns of each older name."""
    found = dict(entries)
    for key, entry in entries.items():
        successor, new, why = _successor(key, keys)
        if not successor:
            continue
        del found[key]
        given = next((name for name in (successor, new) if name in found), None)
        if given is not None:
            problems.warn(f"has no effect: {problems.words(given)} is set too", entry)
        else:
            found[successor] = entry
            problems.warn(f"is read as {problems.words(successor)}: {why}", entry)
    return found


def _successor(key: str, keys: Keys) -> tuple[str, str, str]:
    """The key to read instead of `key` (empty: `key` is no older name), its name without a flow in front, and why."""
    reading = keys.recognise(key)
    if reading is None:
        return keys.older_form(key), "", "KIP-382 proposed this form, and MM2 never read it"
    known = reading.property
    if known.effect is not Effect.RENAMED or reading.idle:
        return "", "", ""
    return key.removesuffix(known.name) + known.successor, known.successor, known.why
