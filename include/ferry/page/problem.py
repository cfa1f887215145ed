"""Why a read failed, as the page shows it (pure). Ferry's errors say what is wrong, where, and what to change; they hold no secret."""

from dataclasses import dataclass

from ferry import errors
from ferry.errors import ClusterUnreachable, FerryError, error_named


class ReadTimedOut(ClusterUnreachable):
    """A read of the page took too long, so the page ended its process."""

    next_step = "check that both clusters answer: ferry status asks the same without a time limit"


class ReaderDied(FerryError):
    """The process of a read died: a client library crashed, or memory ran out."""

    next_step = "the page starts another process; the api-server's log holds the last output of this one"


class TooManyReads(FerryError):
    """Too many reads of one flow's topics and groups wait, so the page did not begin this one."""

    next_step = "wait: the page asks again; the api-server's log of requests names who asks for so much"


class ReadFailed(FerryError):
    """A read met an error that Ferry does not expect."""

    next_step = "the api-server's log holds the details; ferry status may say more"


@dataclass(frozen=True)
class Problem:
    error: str
    message: str
    next_step: str

    @property
    def unreachable(self) -> bool:
        """Whether the problem is that a cluster could not be read at all."""
        return self.error == ReadTimedOut.__name__ or issubclass(error_named(self.error), ClusterUnreachable)


def problem_of(error: BaseException) -> Problem:
    """An error as the page shows it. Only the class of a foreign error is shown, because its text may hold anything."""
    if not isinstance(error, FerryError):
        return problem_of(ReadFailed(f"{type(error).__name__} while reading"))
    # Some packages have subclasses of their own; docs/troubleshooting.md names only the classes of ferry.errors.
    public = next(kind for kind in type(error).__mro__ if kind.__module__ in {errors.__name__, __name__})
    return Problem(public.__name__, str(error), error.next_step)
