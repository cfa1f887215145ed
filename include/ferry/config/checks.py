"""Checks single entries while a file is loaded: whether the key is known, the value of the right kind, and the property in effect."""

from dataclasses import dataclass, replace

from ferry.config.keys import Keys, Recognised
from ferry.config.problems import Problems
from ferry.config.properties import MISPLACED, PEM_BEGIN, Entry
from ferry.config.providers import Providers, UnresolvedReference, has_reference
from ferry.config.registry.kinds import BOOLEAN, PATTERNS
from ferry.config.registry.property import Effect, Scope
from ferry.errors import ConfigError
from ferry.policy.java_patterns import java_pattern

_COMMENT = " #"


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
            what, nearest = self._unknown(key, entry)
            self.problems.add(what, entry, nearest=nearest)
            return entry
        if reading.property.effect is Effect.REFUSED:
            if entry.value.strip():
                self.problems.add(f"{reading.property.meaning}: {reading.property.why}", entry)
            return entry
        if PEM_BEGIN in entry.value and not reading.property.kind.secret:
            self.problems.add(MISPLACED, entry)
            return entry
        self._warn(entry, reading)
        resolved = self._resolved(entry, reading)
        if not has_reference(resolved.value):  # a value that a reference gave is never shown
            self._check_value(resolved, reading, shown=resolved == entry and not reading.property.kind.secret)
        return resolved

    def _unknown(self, key: str, entry: Entry) -> tuple[str, str | None]:
        """What is wrong with a key that nobody knows, and the key that may have been meant."""
        if key in self.keys.aliases and entry.value.startswith("->"):
            return "ends at the blank, as every key in a properties file: write the flow without blanks, A->B.<property>", None
        if any(key.startswith(f"{alias}->{alias}.") for alias in self.keys.aliases):
            return "is a flow from a cluster to itself", None
        if meant := self.keys.meant(entry.key):
            return f"is not a known property: write {meant}", None
        if entry.key.startswith("config.providers."):
            return "configures no provider that config.providers names", None
        stray = self.keys.stray_prefix(key) if key == entry.key else None
        known = ", ".join(self.keys.aliases)
        what = f"{stray} is neither a cluster of this file ({known}) nor a flow between two of them" if stray else "is not a known property"
        nearest = self.keys.nearest(key)
        return what, nearest and self.problems.words(nearest)

    def _warn(self, entry: Entry, reading: Recognised) -> None:
        if reading.idle:
            self.problems.warn(f"has no effect: {self.problems.words(reading.idle)}", entry)
        elif reading.property.effect is Effect.NO_EFFECT:
            self.problems.warn(f"has no effect in Ferry: {reading.property.why}", entry)
        if reading.property.kind is BOOLEAN and entry.value != entry.value.strip():
            self.problems.warn("has a blank after its value, so MM2 does not read it as true everywhere: remove the blank", entry)
        if _COMMENT in entry.value and not reading.property.kind.secret:
            self.problems.warn("holds a #, which is part of the value: a comment needs a line of its own", entry)

    def _resolved(self, entry: Entry, reading: Recognised) -> Entry:
        try:
            if reading.property.scope is not Scope.CLIENT:
                return replace(entry, value=self.providers.resolve(entry.value))
            self.providers.check(entry.value)
        except UnresolvedReference as problem:
            self.problems.add(str(problem), entry)
        return entry

    def _check_value(self, entry: Entry, reading: Recognised, *, shown: bool) -> None:
        known = reading.property
        try:
            value = known.kind.parse(entry.value)
        except ValueError:
            hint = " (a # inside a line is part of the value)" if shown and _COMMENT in entry.value else ""
            self.problems.add(f"must be {known.kind.wants}{f', not {entry.value!r}' if shown else ''}{hint}", entry)
            return
        if isinstance(value, tuple) and len(value) < entry.value.count(",") + 1 and entry.value.strip():
            self.problems.warn("holds an element twice; once is enough", entry)
        if known.kind is PATTERNS:
            try:
                java_pattern(value, known.name)
            except ConfigError as problem:
                self.problems.add(str(problem).removeprefix(f"{known.name}: "), entry)
