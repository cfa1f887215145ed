"""Processes of a world, all in one thread: each runs until it waits, and goes on when its time is over or a message comes.

The world decides when that is, so a process can be killed or stand still at any moment at which it waits or sends. What it sent before
stays under way. A killed process does nothing any more: what it writes while its blocks are left goes nowhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

if TYPE_CHECKING:
    from tests.simulation.world import World


class Killed(BaseException):
    """Leaves all blocks of a process that was killed."""


class Process:
    """`work`: what it does. `result`: of its work, or `problem`, the error. `began`, `over`: when, in seconds since 1970."""

    def __init__(self, world: World, name: str, work: Callable[[], Any]) -> None:
        self.name, self._world, self._work = name, world, work
        self.began, self.over = world.now, 0.0
        self.alive, self.ended, self.killed, self.frozen = True, False, False, False
        self.clock_error = 0.0  # by how many seconds its wall clock is ahead
        self.result: Any = None
        self.problem: BaseException | None = None
        self.cut: list[Callable[[], None]] = []  # what to do with its connections when it is killed
        self.changed: Callable[[], None] = lambda: None  # called when it has ended, was killed, or stands still
        self.hears = False  # whether a message ends its wait
        self.held: list[Callable[[], None]] = []  # what it sends when it goes on
        self.outbox: list[tuple[tuple[str, int], Callable[[], None]]] = []  # by address: what leaves when it next waits
        self._inbox: deque[Callable[[], None]] = deque()
        self._turn, self._overdue, self._runs = 0, False, False
        self._greenlet = greenlet(self._run, parent=world.hub)
        world.at(world.now, lambda: self._wake(0))

    def _run(self) -> None:
        try:
            self.result = self._work()
        except Killed:
            pass
        except Exception as problem:  # noqa: BLE001 - whoever has started it looks at it
            self.problem = problem
        self._post()
        self.alive, self.ended, self.over = False, True, self.over if self.killed else self._world.now
        self.cut.clear()
        self._world.at(self._world.now, self.changed)

    def wait(self, seconds: float | None, *, hears: bool) -> None:
        """Called by the process itself: let others go on for this time (None: until a message comes). `hears`: a message ends the wait."""
        self._leave_if_killed()
        self._post()
        if not (hears and self._inbox):
            self._turn += 1
            self.hears = hears
            if seconds is not None:
                self._world.after(max(seconds, 0.0), lambda turn=self._turn: self._wake(turn))  # type: ignore[misc]
            self._world.hub.switch()
            self._leave_if_killed()
        while hears and self._inbox:
            self._inbox.popleft()()

    def _post(self) -> None:
        """Let leave what was sent in this turn, all at the same moment: in the order of addresses, because Ferry's may be that of a set."""
        if self.outbox:
            outbox, self.outbox = sorted(self.outbox, key=itemgetter(0)), []
            for _, send in outbox:
                send()

    def tell(self, act: Callable[[], None]) -> None:
        """A message has come; the process does `act` when it listens."""
        if self.alive:
            self._inbox.append(act)
            if self.hears:
                self._wake(self._turn)

    def _wake(self, turn: int) -> None:
        if turn != self._turn or not self.alive:
            return
        if self.frozen:
            self._overdue = True
        else:
            self._resume(self._greenlet.switch)

    def _resume(self, switch: Callable[[], Any]) -> None:
        self._turn += 1
        self.hears, self._overdue, self._runs = False, False, True
        before, self._world.current = self._world.current, self
        switch()
        self._world.current, self._runs = before, False

    def freeze(self) -> None:
        """Stand still: it does not see that time goes on. If it runs now, what it still sends before its next wait is held back."""
        self.frozen = True
        self._world.at(self._world.now, self.changed)

    def thaw(self) -> None:
        self.frozen = False
        held, self.held = self.held, []
        for send in held:
            send()
        if self.alive and (self._overdue or (self.hears and self._inbox)):
            self._wake(self._turn)

    def kill(self) -> None:
        """End at once. If it runs now, it leaves its blocks at its next wait."""
        if not self.alive:
            return
        self.alive, self.killed, self.over = False, True, self._world.now
        self._world.note(f"{self.name} is killed")
        self._world.at(self._world.now, self.changed)
        for cut in self.cut:
            cut()
        self.cut.clear()
        if not self._runs and self._greenlet:
            if getcurrent() is self._world.hub:
                self.leave()
            else:
                self._world.at(self._world.now, self.leave)

    def leave(self) -> None:
        """Leave all blocks, if it was killed and has not done so."""
        if self._greenlet:
            self._resume(lambda: self._greenlet.throw(Killed))

    def _leave_if_killed(self) -> None:
        if self.killed:
            raise Killed


class IdleThread:
    """Stands for a thread that only tells of progress: it does nothing."""

    def __init__(self, **_: Any) -> None:
        pass

    def start(self) -> None:
        """Nothing begins."""

    def is_alive(self) -> bool:
        return False

    def join(self, timeout: float | None = None) -> None:
        """Nothing has to end."""


class IdleEvent:
    """Stands for an event that only such threads wait for."""

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
