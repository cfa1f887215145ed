"""The interface of message handlers and assignment listeners.

KIP-3: MirrorMakerMessageHandler and ConsumerRebalanceListener. Ferry has no rebalances: a lane's partitions are fixed for a run, so the
listener's two calls stand around the work of a lane.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `topic`, `partition` and `offset` are the source's, `timestamp` is in ms since the epoch (-1: none).

    Header keys that are no UTF-8 hold their bytes as surrogate escapes, so that they leave as they came. Change a record with
    `dataclasses.replace(record, value=…)`. What a handler returns keeps topic and partition; the offset of an output means nothing.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class MessageHandler(Protocol):
    """Named by `ferry.message.handler = package.module:Class`. A function that takes a record may be named instead of a class.

    Made once in every process that copies: `Class(args)` with the text of `ferry.message.handler.args`, `Class()` without it.
    """

    def handle(self, record: Record) -> Iterable[Record]:
        """What the target gets instead of `record`, in order: nothing drops it, several multiply it.

        Records of a partition come in order. A record may come again, after an aborted transaction or in another process, and only its
        last outputs count, so a handler should have no effects of its own. An exception stops the partition before the record.
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
    """Named by `ferry.assignment.listener = package.module:Class`, made like a message handler."""

    def before_starting(self, assignments: Sequence[Assignment]) -> None:
        """A lane is about to copy these partitions. An exception keeps it from doing so."""
        ...

    def before_releasing(self, assignments: Sequence[Assignment]) -> None:
        """A lane that was started comes to its end, whether it copied all or not; positions are the committed ones."""
        ...
