"""The interface of message handlers, assignment listeners and token sources.

Handlers and listeners replace MirrorMaker 1's MirrorMakerMessageHandler and ConsumerRebalanceListener (KIP-3). Ferry has no rebalances,
because a lane keeps its partitions until it ends. So Ferry calls the listener once before a lane works and once after, in a thread that
runs no lane: one call at a time. Token sources replace Java's AuthenticateCallbackHandler for logins.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `topic`, `partition` and `offset` are the source's, `timestamp` is in ms since the epoch (-1: none).

    Header keys that are no UTF-8 hold their bytes as surrogate escapes, so Ferry writes the same bytes. Change a record with
    `dataclasses.replace(record, value=…)`. A handler keeps topic and partition, or chooses one of the topics of the target that
    `ferry.handler.reroute` names, and a partition of it. Ferry ignores the offset of what it returns.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class MessageHandler(Protocol):
    """The class that `ferry.message.handler = package.module:Class` names. The property may also name a function that takes a record.

    Every process that copies makes one object: `Class(args)` with the text of `ferry.message.handler.args`, `Class()` without it.
    """

    def handle(self, record: Record) -> Iterable[Record]:
        """Return the records that Ferry writes instead of `record`, in order. Without any, Ferry drops the record.

        Ferry passes the records of a partition in order. It may pass a record again, after an aborted transaction or in another process,
        and keeps only the outputs of the last call, so a handler should have no side effects. After an exception Ferry stops the partition
        before this record.
        """
        ...


@dataclass(frozen=True, slots=True)
class Assignment:
    """One source partition of a lane; `position` is the next source offset to copy."""

    topic: str
    partition: int
    remote_topic: str
    position: int


class AssignmentListener(Protocol):
    """The class that `ferry.assignment.listener = package.module:Class` names. Ferry makes its object as that of a message handler."""

    def before_starting(self, assignments: Sequence[Assignment]) -> None:
        """Ferry calls this before a lane copies these partitions. After an exception the lane does not copy them."""
        ...

    def before_releasing(self, assignments: Sequence[Assignment]) -> None:
        """Ferry calls this when a lane that began ends, whether it copied everything or not. Positions are the committed ones.

        Ferry cannot call it if the process of the lane was killed.
        """
        ...


class TokenSource(Protocol):
    """The class that `sasl.login.callback.handler.class = package.module:Class` names, for logins with OAUTHBEARER.

    A process makes one object for all logins with the same options. It passes no arguments. If the class has `configure`, Ferry calls that
    once with the options of the login module, a dictionary of texts.
    """

    def token(self) -> tuple[str, float]:
        """Return a token, and when it expires in seconds since the epoch.

        Ferry calls this for the first login, and again when four fifths of the token's life are over: one call at a time, in any thread.
        A copy waits for the answer, so limit the time of requests. After an exception Ferry uses the last token until it expires. Ferry
        shows the type and place of an exception, but not its text.
        """
        ...
