"""Kinds of values, parsed by the rules of Kafka's ConfigDef: trimmed, lists split at commas, booleans `true` or `false` in any case."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ferry.policy.custom_classes import is_custom
from ferry.policy.naming import is_ferry_group

_LIST_SEPARATOR = re.compile(r"\s*,\s*")
_CRON_FIELDS = 5
_IMPORT_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_TOPIC_CHARACTERS = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True)
class Kind:
    """`parse` gives the value or raises ValueError; `wants` completes the message "must be …"."""

    name: str
    wants: str
    parse: Callable[[str], Any]
    secret: bool = False


def integer(low: int, high: int, name: str = "int") -> Kind:
    """A whole number in `[low, high]`."""

    def parse(text: str) -> int:
        number = int(text.strip())
        if not low <= number <= high:
            raise ValueError
        return number

    return Kind(name, f"a whole number from {low} to {high}", parse)


def choice(*names: str, ignore_case: bool = False) -> Kind:
    """One of `names`, in the spelling of `names`."""
    known = {(name.lower() if ignore_case else name): name for name in names}

    def parse(text: str) -> str:
        trimmed = text.strip()
        key = trimmed.lower() if ignore_case else trimmed
        if key not in known:
            raise ValueError
        return known[key]

    shown = [name or "(empty)" for name in names]
    return Kind(" / ".join(shown), shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}", parse)


def java_class(*names: str) -> Kind:
    """One of these Java classes; the package may be left out. Gives the simple name."""
    simple = tuple(dict.fromkeys(name.rpartition(".")[2] for name in names))

    def parse(text: str) -> str:
        trimmed = text.strip()
        if trimmed not in names and trimmed not in simple:
            raise ValueError
        return trimmed.rpartition(".")[2]

    return Kind("class", f"{' or '.join(simple)} (Ferry runs no other Java classes)", parse)


def plugin(*names: str) -> Kind:
    """One of these Java classes of MM2, or the import path of a Python class. Gives the simple name or the import path."""
    known = java_class(*names)
    simple = tuple(dict.fromkeys(name.rpartition(".")[2] for name in names))

    def parse(text: str) -> str:
        trimmed = text.strip()
        return trimmed if is_custom(trimmed) else str(known.parse(text))

    return Kind("class", f"{' or '.join(simple)}, or a class of your own (write it in Python: package.module:Class)", parse)


def list_of(*names: str) -> Kind:
    """A list of at least one of `names`."""

    def parse(text: str) -> tuple[str, ...]:
        found = _list(text)
        if not found or not set(found) <= set(names):
            raise ValueError
        return found

    return Kind("list", f"a list of {' and '.join(names)}, not empty", parse)


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in {"true", "false"}:
        raise ValueError
    return lowered == "true"


def _decimal(text: str) -> float:
    return float(text.strip())


def _rate(text: str) -> float:
    number = float(text.strip())
    if number != 0 and not 0.01 <= number <= 1_000_000:
        raise ValueError
    return number


def _list(text: str) -> tuple[str, ...]:
    trimmed = text.strip()
    elements = _LIST_SEPARATOR.split(trimmed) if trimmed else []
    if "" in elements:
        raise ValueError
    return tuple(dict.fromkeys(elements))


def _cron(text: str) -> str:
    from croniter import croniter  # type: ignore[import-untyped]  # noqa: PLC0415 - slow to load, and few files have a schedule

    fields = text.split()
    if len(fields) != _CRON_FIELDS or not croniter.is_valid(text.strip()):
        raise ValueError
    return " ".join(fields)


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text.strip())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _start(text: str) -> str | datetime:
    trimmed = text.strip()
    return trimmed if trimmed in {"earliest", "latest"} else _time(trimmed)


def _separator(text: str) -> str:
    trimmed = text.strip()
    if not _TOPIC_CHARACTERS.fullmatch(trimmed):
        raise ValueError
    return trimmed


def _word(text: str) -> str:
    trimmed = text.strip()
    if not trimmed:
        raise ValueError
    return trimmed


def _callables(text: str) -> tuple[str, ...]:
    found = _list(text)
    if not all(_IMPORT_PATH.fullmatch(name) for name in found):
        raise ValueError
    return found


def _arguments(text: str) -> dict[str, dict[str, Any]]:
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(given, dict) for given in found.values()):
        raise ValueError
    return found


def _group(text: str) -> str:
    trimmed = text.strip()
    if is_ferry_group(trimmed):
        raise ValueError
    return trimmed


def _servers(text: str) -> tuple[str, ...]:
    servers = _list(text)
    for server in servers:
        host, colon, port = server.rpartition(":")
        # Kafka's ClientUtils accepts a protocol in front and IPv6 addresses in brackets; the port is required.
        if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536 or (":" in host and not host.endswith("]")):
            raise ValueError
    if not servers:
        raise ValueError
    return servers


STRING = Kind("string", "a text", str.strip)
WORD = Kind("string", "a text that is not empty", _word)
PASSWORD = Kind("password", "a text", lambda text: text, secret=True)
BOOLEAN = Kind("boolean", "true or false", _boolean)
INT = integer(-(2**31), 2**31 - 1)
LONG = integer(-(2**63), 2**63 - 1, "long")
AT_LEAST_0 = integer(0, 2**31 - 1)
AT_LEAST_1 = integer(1, 2**31 - 1)
LONG_AT_LEAST_0 = integer(0, 2**63 - 1, "long")
DECIMAL = Kind("double", "a number", _decimal)
RATE = Kind("double", "a number from 0.01 to 1000000, or 0", _rate)
LIST = Kind("list", "a list separated by commas, without empty elements", _list)
CLASS = Kind("class", "the name of a class", str.strip)
CRON = Kind("cron", "a cron expression of five fields (minute hour day month weekday)", _cron)
START = Kind("earliest / latest / time", "earliest, latest or an ISO 8601 time such as 2026-01-31T12:00:00Z", _start)
SEPARATOR = Kind("string", "letters, digits, dots, dashes or underscores, as topic names allow no other characters", _separator)
GROUP = Kind("string", "a consumer group that is not one of Ferry's own, which begin with __ferry-", _group)
CALLABLES = Kind("list", "import paths separated by commas, each package.module:name", _callables)
ARGUMENTS = Kind("json", 'a JSON object of objects such as {"package.module:name": {"argument": "value"}}', _arguments, secret=True)
SERVERS = Kind("list", "host:port pairs separated by commas", _servers)


def _replication_factor(text: str) -> int:
    number = int(text.strip())
    if number != -1 and not 1 <= number <= 32_767:
        raise ValueError
    return number


REPLICATION_FACTOR = Kind("short", "a whole number from 1 to 32767, or -1 for the broker's default", _replication_factor)
