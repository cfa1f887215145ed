"""Collects all problems of a file, so that a user sees them together."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ferry.config.properties import Entry, without_pem
from ferry.config.secret import HIDDEN
from ferry.config.sources import Setting
from ferry.errors import ConfigError


class Told(NamedTuple):
    """A problem or warning: the file and line, the key as it was written (empty: none), and what."""

    path: str
    line: int
    key: str
    what: str


# After a backslash at the end of a line, the next line is part of the value too: a message could then quote a password.
_SECRET = re.compile(r"""((?:password|secret)\S*\s*[=:]\s*)(?:\\?"(?:[^"\\]|\\.)*"?|'[^']*'?|\S+)""", re.IGNORECASE)


def located(path: Path | str, line: int, key: str, what: str) -> str:
    """`<file>:<line>: <key>: what`, without unknown parts and without secrets."""
    place = f"{path}:{line}" if line else f"{path}"
    return f"{place}: {without_pem(key)}: {without_secrets(what)}" if key else f"{place}: {without_secrets(what)}"


def without_secrets(text: str) -> str:
    """`text` without what looks like a password, and without PEM texts, which may be private keys."""
    return _SECRET.sub(rf"\1{HIDDEN}", without_pem(text))


class PropertyError(ConfigError):
    """One property is wrong: its place (`line` 0: not in the file) and what to change. Can be pickled."""

    def __init__(self, path: Path, line: int, key: str, what: str) -> None:
        super().__init__(path, line, key, what)
        self.path, self.line, self.key, self.what = path, line, key, what

    def __str__(self) -> str:
        return located(*self.args)


Place = Entry | Setting | PropertyError


@dataclass
class Problems:
    """Equal problems count once, and so do equal warnings. `words`: as in PropertiesFile, for keys that are not in the file."""

    path: Path
    words: Callable[[str], str] = str
    _problems: set[Told] = field(default_factory=set)
    _warnings: set[Told] = field(default_factory=set)

    def add(self, what: str, at: Place | None = None, *, key: str = "", nearest: str | None = None) -> None:
        """Add what a person must correct. `key`: instead of that of the entry. `nearest`: the key that this person may have meant."""
        self._problems.add(self._told(f"{what}; did you mean {nearest}?" if nearest else what, at, key))

    def add_error(self, problem: PropertyError) -> None:
        self.add(problem.what, problem, key="" if problem.line else self.words(problem.key))

    def warn(self, what: str, at: Place) -> None:
        """Add a warning about something that Ferry ignores, or reads not as a person expects."""
        self._warnings.add(self._told(what, at, ""))

    def _told(self, what: str, at: Place | None, key: str) -> Told:
        return Told(str(self.path), 0, key, what) if at is None else Told(str(at.path or self.path), at.line, key or at.key, what)

    @property
    def found(self) -> tuple[Told, ...]:
        """All problems, in the order of the file."""
        return tuple(sorted(self._problems))

    @property
    def warned(self) -> tuple[Told, ...]:
        """All warnings, in the order of the file."""
        return tuple(sorted(self._warnings))

    def raise_if_any(self) -> None:
        """ConfigError with every problem, one line each, in the order of the file."""
        if self._problems:
            raise ConfigError("\n".join(located(*told) for told in self.found))
