"""Checks single entries while a file is loaded: whether the key is known, the value of the right kind, and the property in effect."""

import re
from dataclasses import dataclass, replace

from ferry.config.keys import Keys, Recognised
from ferry.config.problems import Problems
from ferry.config.properties import MISPLACED, PEM_BEGIN, Entry
from ferry.config.providers import Providers, UnresolvedReference, has_reference
from ferry.config.registry.kinds import BOOLEAN, PATTERNS, URLS
from ferry.config.registry.property import Effect, Scope
from ferry.config.unknown_keys import judge
from ferry.errors import ConfigError
from ferry.policy.java_patterns import java_pattern

_COMMENT = re.compile(r"\s#")
_QUOTES = "\"'"


def value_hint(text: str) -> str:
    """A frequent mistake that this value shows, in brackets, for a message; empty if it shows none."""
    if _COMMENT.search(text):
        return " (a # inside a line is part of the value)"
    return " (quotes are part of the value: remove them)" if _is_quoted(text) else ""


def _is_quoted(text: str) -> bool:
    trimmed = text.strip()
    return len(trimmed) > 1 and trimmed[0] in _QUOTES and trimmed[-1] == trimmed[0]


@dataclass(frozen=True)
class EntryChecks:
    """Checks entries one by one. Resolves references in values that Ferry itself reads."""

    keys: Keys
    providers: Providers
    problems: Problems

    def checked(self, key: str, entry: Entry) -> Entry:
        """`entry`, which stands for `key`, with its references resolved. Reports all of its problems."""
        reading = self.keys.recognise(key)
        if reading is None:
            self._unknown(key, entry)
            return entry
        # What MM2 drops in this place has no effect there either.
        if reading.property.effect is Effect.REFUSED and not reading.idle:
            if entry.value.strip():
                self.problems.add(f"{reading.property.meaning}: {reading.property.why}", entry)
            return entry
        if PEM_BEGIN in entry.value and not reading.property.kind.secret:
            self.problems.add(MISPLACED, entry)
            return entry
        self._warn(entry, reading)
        resolved = entry
        try:
            if reading.property.scope is Scope.CLIENT:
                self.providers.check(entry.value)
            else:
                resolved = replace(entry, value=self.providers.resolve(entry.value))
        except UnresolvedReference as problem:
            self.problems.add(str(problem), entry)
        if not has_reference(resolved.value):  # a value that a reference gave is never shown
            kind = reading.property.kind
            secret = kind.secret or (kind is URLS and "@" in entry.value)  # a login
            self._check_value(resolved, reading, shown=resolved == entry and not secret)
        return resolved

    def _unknown(self, key: str, entry: Entry) -> None:
        """Refuse a key that nobody knows if a person may have written it to choose the records to copy; otherwise warn about it."""
        found = judge(self.keys, key, entry.value, entry.key)
        nearest = found.nearest and self.problems.words(found.nearest)
        # The line above a key of several lines lost its end: nobody knows what else was lost.
        if found.refused or PEM_BEGIN in entry.value:
            self.problems.add(found.what, entry, nearest=nearest)
        else:
            self.problems.warn(f"{found.what}: it has no effect{f'; did you mean {nearest}?' if nearest else ''}", entry)

    def _warn(self, entry: Entry, reading: Recognised) -> None:
        if reading.idle:
            self.problems.warn(f"has no effect: {self.problems.words(reading.idle)}", entry)
        elif reading.property.effect is Effect.NO_EFFECT:
            self.problems.warn(f"has no effect in Ferry: {reading.property.why}", entry)
        if reading.property.kind is BOOLEAN and entry.value != entry.value.strip():
            self.problems.warn("has a blank after its value, so MM2 does not read it as true everywhere: remove the blank", entry)
        if _COMMENT.search(entry.value) and not reading.property.kind.secret:
            # No topic has such a name, so nobody meant it; a group may have it.
            report = self.problems.add if reading.property.name in {"topics", "topics.exclude"} else self.problems.warn
            report("holds a #, which is part of the value: a comment needs a line of its own", entry)

    def _check_value(self, entry: Entry, reading: Recognised, *, shown: bool) -> None:
        known = reading.property
        try:
            value = known.kind.parse(entry.value)
        except ValueError:
            self.problems.add(f"must be {known.kind.wants}{f', not {entry.value!r}{value_hint(entry.value)}' if shown else ''}", entry)
            return
        if isinstance(value, tuple) and len(value) < entry.value.count(",") + 1 and entry.value.strip():
            self.problems.warn("holds an element twice; once is enough", entry)
        if known.kind is PATTERNS:
            if _is_quoted(entry.value) or (known.name.startswith("topics") and any(quote in entry.value for quote in _QUOTES)):
                self.problems.add("has quotes, which are part of the value: remove them", entry)
            try:
                java_pattern(value, known.name)
            except ConfigError as problem:
                self.problems.add(str(problem).removeprefix(f"{known.name}: "), entry)
