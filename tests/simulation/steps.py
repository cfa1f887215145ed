"""What happens in a simulated cluster by itself: each step waits until the caller runs it, in any order.

A step may be impossible for now, for example a marker for a partition without a leader: then it goes on waiting. Nothing here looks at a
clock or draws a number, so the caller's choices alone decide what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any


class StepKind(Enum):
    """What a step does."""

    MARK = "write the marker of a transaction to one partition"
    COMPLETE = "note that all markers of a transaction are written"
    TIME_OUT = "abort a transaction whose time is over"
    LOAD = "read the state of a coordinator that has moved"
    ANSWER = "answer a request that has waited"
    ELECT = "elect leaders in the place of a broker that is gone"
    FORGET = "let groups forget their offsets of a deleted topic"
    FOLLOW = "let the replicas of a broker that is back catch up"


class Step:
    """`run` says whether it is done; if not, it must wait longer."""

    __slots__ = ("about", "kind", "run")

    def __init__(self, kind: StepKind, about: str, run: Callable[[], bool]) -> None:
        self.kind, self.about, self.run = kind, about, run

    def __repr__(self) -> str:
        return f"<{self.kind.name} {self.about}>"


class Steps:
    """The steps that wait, in the order in which they came. `new`: those of which the caller has not decided when they run."""

    def __init__(self) -> None:
        self._waiting: list[Step] = []
        self.new: list[Step] = []

    def __iter__(self) -> Iterator[Step]:
        return iter(tuple(self._waiting))

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, kind: StepKind, about: str, run: Callable[[], bool]) -> None:
        self._waiting.append(Step(kind, about, run))
        self.new.append(self._waiting[-1])

    def run(self, step: Step) -> bool:
        """Run one of the steps; whether it is done."""
        done = step.run()
        if done:
            self._waiting.remove(step)
        return done


class Reply:
    """The answer to one request, which comes now, later, or never: `lost`, the connection was closed instead."""

    __slots__ = ("_tell", "answer", "ended", "lost")

    def __init__(self) -> None:
        self.answer: Any = None
        self.ended, self.lost = False, False
        self._tell: list[Callable[[Reply], None]] = []

    def give(self, answer: Any) -> None:
        """Answer. Does nothing if the connection was closed meanwhile."""
        if not self.ended:
            self.answer, self.ended = answer, True
            self._told()

    def lose(self) -> None:
        """Close the connection without an answer."""
        if not self.ended:
            self.lost, self.ended = True, True
            self._told()

    def then(self, tell: Callable[[Reply], None]) -> None:
        """Call `tell` with this reply at its end."""
        if self.ended:
            tell(self)
        else:
            self._tell.append(tell)

    def _told(self) -> None:
        for tell in self._tell:
            tell(self)
