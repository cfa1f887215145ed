"""Modes and configs: of a subject, of a context, of the default context (None), and above all of them `:.__GLOBAL:`.

What is in force for a subject is the first that is set on this way up (`mode` and `config` of InMemoryCache).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.schemas.double import refusals
from tests.schemas.double.subject_names import DEFAULT, GLOBAL, parsed

READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD = "READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"
MODES = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD)
LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
TOP = f":{GLOBAL}:"
# What a subject's config takes from the global one if it does not set it itself (Config.mergeConfigs).
_INHERITED = ("normalize", "validateFields", "validateNewSchemas", "validateRules", "compatibilityPolicy", "compatibilityGroup")
_FIELDS = ("alias", "aliasForDeks", *_INHERITED, "defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")
Config = dict[str, Any]


class Scopes:
    """Modes and configs by scope. A config here has `compatibilityLevel`; a request says `compatibility`."""

    def __init__(self, level: str = "BACKWARD", mode: str = READWRITE) -> None:
        self._level, self._mode = level, mode
        self.modes: dict[str | None, str] = {}
        self.configs: dict[str | None, Config] = {}

    def own_mode(self, scope: str | None) -> str | None:
        return self.modes.get(scope) or (self._mode if scope in (None, TOP) else None)

    def mode(self, scope: str | None) -> str:
        """The mode in force."""
        return next((self.modes[one] for one in _way_up(scope) if one in self.modes), self._mode)

    def own_config(self, scope: str | None) -> Config | None:
        if scope in self.configs:
            return {"compatibilityLevel": self._level} | self.configs[scope]
        return {"compatibilityLevel": self._level} if scope in (None, TOP) else None

    def config(self, scope: str | None) -> Config:
        """The config in force."""
        own = self.own_config(scope)
        if scope is not None and own is not None:
            above = self.own_config(None) or {}
            return {key: above[key] for key in _INHERITED if key in above} | own
        found = next((self.configs[one] for one in _way_up(scope) if one in self.configs), {})
        return {"compatibilityLevel": self._level} | found

    def update_config(self, scope: str | None, request: Config) -> Config:
        """Change what the request names; null removes. The whole config as a request would say it. Refused 42203."""
        level = request.get("compatibility")
        if level is not None and str(level).upper() not in LEVELS:
            raise refusals.invalid_compatibility(level)
        config = dict(self.configs.get(scope, {}))
        named = {key: request[key] for key in _FIELDS if key in request}
        if "compatibility" in request:
            named["compatibilityLevel"] = level and str(level).upper()
        self.configs[scope] = {key: value for key, value in (config | named).items() if value is not None}
        return as_request(self.configs[scope])


def as_request(config: Config) -> Config:
    return {("compatibility" if key == "compatibilityLevel" else key): value for key, value in config.items()}


def has_defaults(config: Config) -> bool:
    return any(key.startswith(("default", "override")) for key in config)


def _way_up(scope: str | None) -> Iterator[str | None]:
    yield scope
    context = parsed(scope or "").context
    yield None if context == DEFAULT else f":{context}:"
    yield TOP
