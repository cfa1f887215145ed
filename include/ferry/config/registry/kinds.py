"""Kinds of values, parsed by the rules of Kafka's ConfigDef: trimmed, lists split at commas, booleans `true` or `false` in any case."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from ferry.policy.custom_classes import is_custom
from ferry.policy.naming import TOPIC_CHARACTERS, is_ferry_group

_LIST_SEPARATOR = re.compile(r"\s*,\s*")
_CRON_FIELDS = 5
_PROTOCOL = re.compile(r"^[0-9a-zA-Z%._-]*://")  # as in Kafka's Utils.getHost, which ignores it
_CONTEXT = re.compile(r"(\.[^:=*]*)(?:=(\.[^:=*]*))?")
_SEPARATOR = re.compile(f"{TOPIC_CHARACTERS}*")


@dataclass(frozen=True)
class Kind:
    """`parse` gives the value or raises ValueError; `wants` completes the message "must be …"."""

    name: str
    wants: str
    parse: Callable[[str], Any]
    secret: bool = False


def _only(read: Callable[[str], Any], holds: Callable[[Any], bool]) -> Callable[[str], Any]:
    """A function that reads a text, and raises ValueError if `holds` is false for the value."""

    def parse(text: str) -> Any:
        value = read(text)
        if not holds(value):
            raise ValueError
        return value

    return parse


def integer(low: int, high: int, name: str = "int") -> Kind:
    return Kind(name, f"a whole number from {low} to {high}", _only(int, lambda number: low <= number <= high))


def times(unit: int, kind: Kind) -> Kind:
    """A number of `unit`. Gives their product, for example bytes; None for 0."""
    return replace(kind, parse=lambda text: kind.parse(text) * unit or None)


def choice(*names: str, ignore_case: bool = False) -> Kind:
    """One of `names`, in the spelling of `names`."""
    known = {(name.lower() if ignore_case else name): name for name in names}

    def find(text: str) -> str | None:
        return known.get(text.strip().lower() if ignore_case else text.strip())

    *others, last = (name or "(empty)" for name in names)
    return Kind(" / ".join((*others, last)), f"{', '.join(others)} or {last}", _only(find, lambda found: found is not None))


def java_class(*names: str, own: bool = False) -> Kind:
    """The simple name of one of these Java classes, whose package may be left out; with `own` also the import path of a Python class."""
    simple = tuple(dict.fromkeys(name.rpartition(".")[2] for name in names))

    def parse(text: str) -> str:
        trimmed = text.strip()
        if own and is_custom(trimmed):
            return trimmed
        if trimmed not in names and trimmed not in simple:
            raise ValueError
        return trimmed.rpartition(".")[2]

    others = ", or a class of your own (write it in Python: package.module:Class)" if own else " (Ferry runs no other Java classes)"
    return Kind("class", f"{' or '.join(simple)}{others}", parse)


def list_of(*names: str) -> Kind:
    return Kind("list", f"a list of {' and '.join(names)}, not empty", _only(_list, lambda found: found and set(found) <= set(names)))


def _list(text: str) -> tuple[str, ...]:
    trimmed = text.strip()
    elements = _LIST_SEPARATOR.split(trimmed) if trimmed else []
    if "" in elements:
        raise ValueError
    return tuple(dict.fromkeys(elements))


def _is_cron(expression: str) -> bool:
    from croniter import croniter  # type: ignore[import-untyped]  # noqa: PLC0415 - slow to load, and few files have a schedule

    return len(expression.split()) == _CRON_FIELDS and croniter.is_valid(expression)


def _start(text: str) -> str | datetime:
    trimmed = text.strip()
    if trimmed in {"earliest", "latest"}:
        return trimmed
    moment = datetime.fromisoformat(trimmed)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _servers(text: str) -> tuple[str, ...]:
    """Without protocols, and without empty elements: Kafka's ClientUtils leaves both out."""
    return tuple(dict.fromkeys(_PROTOCOL.sub("", server) for server in _LIST_SEPARATOR.split(text.strip()) if server))


def _is_server(server: str) -> bool:
    """Kafka's ClientUtils accepts IPv6 addresses in brackets; the port is required."""
    host, _, port = server.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 65_536 and (":" not in host or host.endswith("]"))


def _urls(text: str) -> tuple[str, ...]:
    return tuple(url.rstrip("/") for url in _list(text))


def _is_url(text: str) -> bool:
    """A login in a URL would be shown in messages."""
    parts = urlsplit(text)
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc and not (parts.query or parts.fragment)


def _contexts(text: str) -> tuple[tuple[str, str], ...]:
    """(context of the source, context of the target)."""
    pairs = [(found[1], found[2] or found[1]) for found in map(_CONTEXT.fullmatch, _list(text)) if found]
    if not pairs or len(pairs) < len(_list(text)) or len(dict(pairs)) < len(pairs):
        raise ValueError
    return tuple(pairs)


_TRUE_OR_FALSE = choice("true", "false", ignore_case=True)

STRING = Kind("string", "a text", str.strip)
WORD = Kind("string", "a text that is not empty", _only(str.strip, bool))
PASSWORD = Kind("password", "a text", lambda text: text, secret=True)
BOOLEAN = Kind("boolean", "true or false", lambda text: _TRUE_OR_FALSE.parse(text) == "true")
INT = replace(integer(-(2**31), 2**31 - 1), wants="a whole number")
LONG = replace(integer(-(2**63), 2**63 - 1, "long"), wants="a whole number")
AT_LEAST_0 = integer(0, 2**31 - 1)
AT_LEAST_1 = integer(1, 2**31 - 1)
LONG_AT_LEAST_0 = integer(0, 2**63 - 1, "long")
REPLICATION_FACTOR = Kind(
    "short",
    "a whole number from 1 to 32767, or -1 for the broker's default",
    _only(int, lambda number: number == -1 or 1 <= number <= 32_767),
)
DECIMAL = Kind("double", "a number", float)
RATE = Kind("double", "a number from 0.01 to 1000000, or 0", _only(float, lambda number: number == 0 or 0.01 <= number <= 1_000_000))
LIST = Kind("list", "a list separated by commas, without empty elements", _list)
PATTERNS = Kind("list", LIST.wants, _list)  # Java regular expressions, which checks.py compiles
CLASS = Kind("class", "the name of a class", str.strip)
CRON = Kind(
    "cron", "a cron expression of five fields (minute hour day month weekday)", _only(lambda text: " ".join(text.split()), _is_cron)
)
START = Kind("earliest / latest / time", "earliest, latest or an ISO 8601 time such as 2026-01-31T12:00:00Z", _start)
SEPARATOR = Kind(
    "string",
    "letters, digits, dots, dashes or underscores, as topic names allow no other characters",
    _only(str.strip, lambda text: _SEPARATOR.fullmatch(text) is not None),
)
GROUP = Kind(
    "string",
    "a consumer group that is not one of Ferry's own, which begin with __ferry-",
    _only(str.strip, lambda group: not is_ferry_group(group)),
)
CALLABLES = Kind(
    "list", "import paths separated by commas, each package.module:name", _only(_list, lambda found: all(map(is_custom, found)))
)
ARGUMENTS = Kind(
    "json",
    'a JSON object of objects such as {"package.module:name": {"argument": "value"}}',
    _only(json.loads, lambda found: isinstance(found, dict) and all(isinstance(given, dict) for given in found.values())),
    secret=True,
)
URLS = Kind(
    "list",
    "URLs separated by commas, each http://host or https://host without a user in it",
    _only(_urls, lambda urls: urls and all(map(_is_url, urls))),
)
CONTEXTS = Kind(
    "list",
    "contexts separated by commas, each .name or .source=.target, and each once",
    _contexts,
)
SERVERS = Kind("list", "host:port pairs separated by commas", _only(_servers, lambda servers: servers and all(map(_is_server, servers))))
