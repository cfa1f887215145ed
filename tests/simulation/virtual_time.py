"""Ferry in one process on virtual time. Nothing really waits: who waits gives way to who is due next, and time jumps there.

Threads stay threads, but only one runs at any moment: it goes on until it waits. If several can go on at the same moment, the seed decides
which one does. So the same seed gives the same run, if the variable PYTHONHASHSEED is the same too.

Only waits through `ferry.clock`, the selector of an event loop, or kafka-python's module `time` give way. A thread that really waits for
another one, for example for its lock, would stop everything.
"""

from __future__ import annotations

import math
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from selectors import SelectorKey
from typing import Any, Protocol

import pytest
from kafka.net.selector import Task
from tests.simulation import shortcuts

from ferry import clock
from ferry.clusters.net import event_loop

# When it begins: nothing may depend on the real date.
BEGINNING = 1_700_000_000.0
# The least that a wait takes, and a look at sockets: so time goes on in a loop that only looks.
LEAST_SECONDS = 1e-6


class WaitsForEver(AssertionError):
    """Each thread waits for something that only another one could do."""


class _Ended(BaseException):
    """Unwinds a thread that still waits at the end."""


class VirtualTime:
    """Stands for the module `time`, and with `chance` for the module `random`."""

    def __init__(self, seed: int) -> None:
        self.now, self.chance = 0.0, random.Random(seed)
        self.main = self.running = _Turn("main")
        self.turns = [self.main]
        self.over = False

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return BEGINNING + self.now

    def time_ns(self) -> int:
        return round(self.time() * 1e9)

    def process_time(self) -> float:
        """Work takes no time."""
        return 0.0

    def token_hex(self, count: int) -> str:
        return self.chance.randbytes(count).hex()

    def sleep(self, seconds: float) -> None:
        self.wait(seconds)

    def event(self) -> VirtualEvent:
        return VirtualEvent(self)

    def thread(self, **given: Any) -> VirtualThread:
        return VirtualThread(self, **given)

    def selector(self) -> VirtualSelector:
        return VirtualSelector(self)

    def wait(self, seconds: float | None, holds: Callable[[], object] = bool) -> None:
        """Give way to other threads until `seconds` have passed (None: for ever), or until it `holds`. WaitsForEver, in the main thread."""
        mine = self.running
        mine.due, mine.holds = self.now + (math.inf if seconds is None else max(seconds, LEAST_SECONDS)), holds
        if self.over and mine is not self.main:
            raise _Ended
        self._go_on()
        mine.taken()
        if self.over and mine is not self.main:
            raise _Ended
        if not (mine.due <= self.now or mine.holds()):
            raise WaitsForEver(", ".join(turn.name for turn in self.turns))

    def _go_on(self) -> None:
        """Give the next turn; to the main thread if nobody could ever go on."""
        able = self._able()
        if not able:
            due = min(turn.due for turn in self.turns)
            self.now = self.now if due == math.inf else due
            able = self._able() or [self.main]
        self.running = self.chance.choice(able)
        self.running.give()

    def _able(self) -> list[_Turn]:
        return [turn for turn in self.turns if turn.due <= self.now or turn.holds()]

    def end_turns(self, mine: _Turn) -> None:
        """The thread that runs has ended."""
        self.turns.remove(mine)
        if not self.over:
            self._go_on()

    def end(self) -> None:
        """Every thread that still waits ends there, one after the other."""
        self.over = True
        for turn in self.turns[1:]:
            self.running = turn
            turn.give()
            turn.thread.join_really()
        self.running = self.main


class _Turn:
    """A thread's right to run: until it has the next one, it waits until `due`, or until it `holds`."""

    def __init__(self, name: str, due: float = 0.0) -> None:
        self.name, self.due = name, due
        self.holds: Callable[[], object] = bool
        self.thread: VirtualThread
        self._given = threading.Lock()
        self._given.acquire()

    def give(self) -> None:
        self._given.release()

    def taken(self) -> None:
        self._given.acquire()


class VirtualThread(threading.Thread):
    def __init__(self, world: VirtualTime, **given: Any) -> None:
        super().__init__(**given)
        self._world = world

    def start(self) -> None:
        self._turn = _Turn(self.name, self._world.now)
        self._turn.thread = self
        self._world.turns.append(self._turn)
        super().start()

    def run(self) -> None:
        self._turn.taken()
        try:
            if not self._world.over:
                super().run()
        except _Ended:
            pass
        finally:
            self._world.end_turns(self._turn)

    def is_alive(self) -> bool:
        return self._turn in self._world.turns

    def join(self, timeout: float | None = None) -> None:
        if self.is_alive():
            self._world.wait(timeout, lambda: not self.is_alive())

    def join_really(self) -> None:
        super().join()


class VirtualEvent:
    def __init__(self, world: VirtualTime) -> None:
        self._world, self._set = world, False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            self._world.wait(timeout, self.is_set)
        return self._set


class VirtualSelector(event_loop.SocketSelector):
    """Looks at real sockets, and waits for them on virtual time: who writes to them must be another thread of this process."""

    def __init__(self, world: VirtualTime) -> None:
        super().__init__()
        self._world = world

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        self._world.now += LEAST_SECONDS
        look = super().select
        found = look(0)
        if not found and timeout != 0:
            self._world.wait(timeout, lambda: found or found.extend(look(0)) or found)
        return found


# Where the numbers of tasks come from; empty: the classes are unchanged.
_numbers: list[Iterator[int]] = []


@contextmanager
def classes_changed() -> Iterator[None]:
    """Inside, classes of kafka-python are as a simulation needs them. Whoever plays many worlds stays inside: after each change of a class,
    Python must learn again how to use it quickly.

    Tasks are numbered. kafka-python runs timers of the same moment, and cancels tasks, in the order of their places in memory.
    """
    if _numbers:
        yield
        return
    make = Task.__init__

    def numbered(task: Any, coroutine: Any) -> None:
        make(task, coroutine)
        task.number = next(_numbers[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Task, "__init__", numbered)
        patch.setattr(Task, "__lt__", lambda one, other: one.number < other.number)
        patch.setattr(Task, "__hash__", lambda task: task.number)
        shortcuts.take(patch)
        _numbers.append(count())
        try:
            yield
        finally:
            _numbers.clear()


class Stand(Protocol):
    """What stands for Python's time, waits, threads and chance, under the names of `ferry.clock`."""

    @property
    def chance(self) -> random.Random: ...
    def monotonic(self) -> float: ...
    def process_time(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
    def time(self) -> float: ...
    def time_ns(self) -> int: ...
    def token_hex(self, count: int) -> str: ...
    def event(self) -> Any: ...
    def thread(self, **given: Any) -> Any: ...
    def selector(self) -> Any: ...


def put_in_place(stand: Stand, patch: pytest.MonkeyPatch) -> None:
    """From now on, all of this process has this time: Ferry, and the modules of kafka-python that are loaded. Inside `classes_changed`."""
    for name in ("monotonic", "process_time", "sleep", "time", "time_ns", "token_hex"):
        patch.setattr(clock, name, getattr(stand, name))
    patch.setattr(clock, "shuffle", stand.chance.shuffle)
    patch.setattr(clock, "Event", stand.event)
    patch.setattr(clock, "Thread", stand.thread)
    patch.setattr(event_loop, "SocketSelector", stand.selector)
    for module in (module for name, module in sys.modules.items() if name.startswith("kafka.")):
        for name, real, virtual in (("time", time, stand), ("random", random, stand.chance)):
            if vars(module).get(name) is real:
                patch.setattr(module, name, virtual)
    _numbers[:] = [count()]  # the order of a set depends on the numbers themselves


@contextmanager
def virtual_time(seed: int) -> Iterator[VirtualTime]:
    """Inside, all of this process is on virtual time. Make event loops inside."""
    world = VirtualTime(seed)
    with classes_changed(), pytest.MonkeyPatch.context() as patch:
        put_in_place(world, patch)
        try:
            yield world
        finally:
            world.end()
