"""Puts entries with older names under the names that replaced them, before anything else reads them.

Only the key of the mapping changes: an entry keeps the key that the person wrote, so messages quote it.
"""

from collections.abc import Mapping

from ferry.config.keys import Keys
from ferry.config.problems import Problems
from ferry.config.properties import Entry
from ferry.config.registry.property import Effect


def with_successors(entries: Mapping[str, Entry], keys: Keys, problems: Problems) -> dict[str, Entry]:
    """`entries` without older names. If an entry has the new name already, it wins, as in Kafka's ConfigUtils. Warns of each older name."""
    found = dict(entries)
    for key, entry in entries.items():
        successor, why = _successor(key, keys)
        if not successor:
            continue
        del found[key]
        if successor in entries:
            problems.warn(f"has no effect: {problems.words(successor)} is set too", entry)
        else:
            found[successor] = entry
            problems.warn(f"is read as {problems.words(successor)}: {why}", entry)
    return found


def _successor(key: str, keys: Keys) -> tuple[str, str]:
    """The key to read instead of `key`, and why; empty if it is no older name."""
    reading = keys.recognise(key)
    if reading is None:
        return keys.older_form(key), "KIP-382 proposed this form, and MM2 never read it"
    known = reading.property
    if known.effect is not Effect.RENAMED or reading.idle:
        return "", ""
    return key.removesuffix(known.name) + known.successor, known.why
