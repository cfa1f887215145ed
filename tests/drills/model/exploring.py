"""All interleavings of a small world, breadth first: the first violation that is met has a shortest trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

W = TypeVar("W")


class Exploration(NamedTuple):
    """What an exploration found: `violation` is empty when no state violates anything, `goals` counts states in which all work is done."""

    states: int
    steps: int
    goals: int
    violation: str
    trace: tuple[str, ...]

    def text(self) -> str:
        """The counterexample, for people."""
        return "\n".join([f"{self.violation}:", *(f"  {number}. {step}" for number, step in enumerate(self.trace, 1))])


class World(Generic[W]):
    """A start, what can happen next in a state, what is wrong with it (empty: nothing), and whether all work is done in it."""

    def __init__(
        self, start: W, following: Callable[[W], Iterable[tuple[str, W]]], wrong: Callable[[W], str], done: Callable[[W], bool], bound: int
    ) -> None:
        self.start, self.following, self.wrong, self.done, self.bound = start, following, wrong, done, bound


def explore(world: World[W]) -> Exploration:
    """Every reachable state once. OverflowError beyond the world's bound, so that an exploration never ends early in silence."""
    reached_from: dict[W, tuple[W, str] | None] = {world.start: None}
    waiting = deque([world.start])
    steps = goals = 0
    while waiting:
        state = waiting.popleft()
        violation = world.wrong(state)
        if violation:
            return Exploration(len(reached_from), steps, goals, violation, _trace(reached_from, state))
        goals += world.done(state)
        for label, found in world.following(state):
            steps += 1
            if found not in reached_from:
                reached_from[found] = state, label
                waiting.append(found)
        if len(reached_from) > world.bound:
            raise OverflowError(f"more than {world.bound:,} states")
    return Exploration(len(reached_from), steps, goals, "", ())


def _trace(reached_from: dict[W, tuple[W, str] | None], state: W) -> tuple[str, ...]:
    labels: list[str] = []
    while (before := reached_from[state]) is not None:
        state, label = before
        labels.append(label)
    return tuple(reversed(labels))
