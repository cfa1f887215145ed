"""Why a read failed, as the page shows it (pure). Ferry's errors say what, where and what to change; they never hold a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ferry import errors
from ferry.errors import ClusterUnreachable, FerryError


class ReadTimedOut(ClusterUnreachable):
    """A read of the page did not end in time; its process was ended."""

    next_step = "check that both clusters answer: ferry status asks the same without a time limit"


class ReaderDied(FerryError):
    """The process of a read ended by itself: a crash of a client library, or out of memory."""

    next_step = "the page starts another one; the api-server's log holds what the process said last"


class TooManyReads(FerryError):
    """So many reads of one flow's topics and groups wait that this one was not begun."""

    next_step = "wait: the page asks again; who asks for so much stands in the api-server's log of requests"


class ReadFailed(FerryError):
    """A read met something that Ferry does not expect."""

    next_step = "the api-server's log holds the details; ferry status may say more"


@dataclass(frozen=True)
class Problem:
    """The class of an error, its message, and what to do next."""

    error: str
    message: str
    next_step: str

    @property
    def unreachable(self) -> bool:
        """Whether a cluster could not be read, rather than was read and found in trouble."""
        found = {"ReadTimedOut": ReadTimedOut}.get(self.error) or getattr(errors, self.error, None)
        return isinstance(found, type) and issubclass(found, ClusterUnreachable)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def problem_of(error: BaseException) -> Problem:
    """An error as the page shows it. Of what is none of Ferry's errors only the class is told: its text may hold anything."""
    if not isinstance(error, FerryError):
        return problem_of(ReadFailed(f"{type(error).__name__} while reading"))
    # Rooms have kinds of their own; people look for the one that docs/troubleshooting.md names.
    public = next(kind for kind in type(error).__mro__ if kind.__module__ in {errors.__name__, __name__})
    return Problem(public.__name__, str(error), error.next_step)


def problem_from(document: Mapping[str, Any]) -> Problem:
    """The inverse of `Problem.document`."""
    return Problem(str(document["error"]), str(document["message"]), str(document["next_step"]))
