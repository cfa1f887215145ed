"""Client properties of one cluster and role with their references resolved, from which the settings of real clients are made.

They exist only while these settings are made. An error names the file, line and key of its property.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ferry.config.problems import PropertyError
from ferry.config.registry import CLIENT_PROPERTIES
from ferry.config.sources import Setting

TRUSTED_PEM = "ssl.truststore.certificates"
_PEM_OF_STORES = {"truststore": [TRUSTED_PEM], "keystore": ["ssl.keystore.key", "ssl.keystore.certificate.chain"]}


@dataclass(frozen=True)
class ClientSettings:
    """Values as plain texts, by Kafka's names. Never shown."""

    alias: str
    path: Path
    settings: dict[str, Setting] = field(repr=False)
    values: dict[str, str] = field(repr=False)
    referring: frozenset[str] = frozenset()

    def text(self, name: str) -> str | None:
        """The value as written; None if it is not set."""
        return self.values.get(name)

    def value(self, name: str) -> Any:
        """The value or the default, parsed by its kind; None without either. ConfigError for a bad value."""
        known = CLIENT_PROPERTIES[name]
        text = self.values.get(name, known.default)
        if text is None:
            return None
        try:
            return known.kind.parse(text)
        except ValueError:
            raise self.problem(name, f"must be {known.kind.wants}") from None

    def given(self, name: str) -> bool:
        return name in self.values

    def refers(self, name: str) -> bool:
        """Whether the value is a reference, or has one in it, that was not looked up."""
        return name in self.referring

    def problem(self, name: str, what: str) -> PropertyError:
        setting = self.settings.get(name)
        if setting is None:
            return PropertyError(self.path, 0, f"{self.alias}.{name}", what)
        return PropertyError(setting.path or self.path, setting.line, setting.key, what)


def store_problems(settings: ClientSettings) -> list[PropertyError]:
    """Contradictions between the properties of stores. Opens no store."""
    found = []
    for store, names in _PEM_OF_STORES.items():
        if settings.refers(f"ssl.{store}.type"):
            continue
        given = [name for name in names if settings.given(name)]
        if given and settings.value(f"ssl.{store}.type") != "PEM":
            found.append(settings.problem(given[0], f"is read only with ssl.{store}.type=PEM: set it"))
        if given and settings.given(f"ssl.{store}.location"):
            found.append(settings.problem(given[0], f"and ssl.{store}.location exclude each other: remove one"))
        missing = [name for name in names if name not in given]
        if given and missing:
            found.append(settings.problem(given[0], f"needs {missing[0]} beside it"))
    return found


def require_consistent(settings: ClientSettings) -> None:
    for problem in store_problems(settings):
        raise problem
