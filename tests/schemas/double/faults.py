"""What a test may plan for a request, before it is done: another answer, or a connection that is cut.

A test gives `RegistryDouble.plan` a function; it is asked once for each request, in their order, and None means: answer it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """`number` counts from 1. `route` is the path with names in place of values, for example `/subjects/{subject}/versions`."""

    number: int
    method: str
    path: str
    route: str
    query: Mapping[str, str]
    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def writes(self) -> bool:
        """A lookup by content is a POST, but only reads."""
        return self.method != "GET" and (self.method, self.route) != ("POST", "/subjects/{subject}")


@dataclass(frozen=True)
class Answered:
    """The registry does nothing and answers this. `code` is the `error_code`; `message` goes with it."""

    status: int
    code: int = 0
    message: str = "planned by the test"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """The connection is closed without an answer: before the request is done, or after."""

    done: bool


Fault = Answered | Cut
Plan = Callable[[Request], Fault | None]


def busy(seconds: int) -> Answered:
    """429: `Retry-After` as Confluent Cloud documents it, in seconds."""
    return Answered(429, 429, "too many requests", {"Retry-After": str(seconds)})


def at(number: int, fault: Fault) -> Plan:
    """This fault at one request, by its number."""
    return lambda request: fault if request.number == number else None
