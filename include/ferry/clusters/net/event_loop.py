"""The event loop of connections to clusters: kafka-python's, with a selector that needs fewer system calls."""

import math
import selectors
import socket
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakSet

from kafka.future import Future
from kafka.net.selector import NetworkSelector

from ferry import clock
from ferry.ending import interruptible, interrupts_held

T = TypeVar("T")

# An async function that asks clusters, and the type of its answer.
Question = Callable[..., Coroutine[Any, Any, T]]


class SocketSelector(selectors.DefaultSelector):
    """Keeps a socket registered when nobody waits for it, because the next wait follows soon. Unregisters it if it becomes ready meanwhile.

    kafka-python registers a socket before every read and unregisters it afterwards: two system calls for each answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[Any, selectors.SelectorKey] = {}
        self._unawaited: dict[int, selectors.SelectorKey] = {}
        self._sockets: WeakSet[socket.socket] = WeakSet()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Do what the standard selector does. The other methods do so too."""
        watched = self._unawaited.pop(fileobj.fileno(), None)
        if watched is not None and watched.fileobj is fileobj and watched.events == events:
            key = super().modify(fileobj, events, data)
        else:
            if watched is not None:  # it waited for other events, or an earlier socket had the same number
                super().unregister(watched.fileobj)
            key = super().register(fileobj, events, data)
            if isinstance(fileobj, socket.socket):
                self._sockets.add(fileobj)
        self._keys[fileobj] = key
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._keys[fileobj] = super().modify(fileobj, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._keys.pop(fileobj)
        if key.events != selectors.EVENT_READ:  # sockets are nearly always ready for writing: that would only wake the loop
            return super().unregister(fileobj)
        self._unawaited[key.fd] = key
        return key

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        awaited = []
        for key, events in interruptible(super().select, timeout):
            if self._unawaited.pop(key.fd, None) is None:
                awaited.append((key, events))
            else:
                super().unregister(key.fileobj)
        return awaited

    def close(self) -> None:
        """Also closes sockets that are still open: a connection that is not complete has no transport yet that would close it."""
        for unfinished in list(self._sockets):
            unfinished.close()
        super().close()
        self._keys.clear()
        self._unawaited.clear()


class EventLoop:
    """Runs questions to one or more clusters, side by side, in the thread that waits for one of them."""

    def __init__(self) -> None:
        # Whether a signal has come while it ran. Then it must not run again for others: it would go on with what was given up.
        self.interrupted = False

    @cached_property
    def selector(self) -> NetworkSelector:
        return NetworkSelector(selector=SocketSelector, slow_task_threshold_secs=0)

    def run(self, coroutine: Question[T], *arguments: Any) -> T:
        """Run to the end; the result. KeyboardInterrupt if a signal comes meanwhile: between two tasks, never in one.

        Code that runs inside, for example that of users, must not call this: it needs a loop of its own.
        """
        result: T = self.result(self.start(coroutine, *arguments))
        return result

    def result(self, future: Future) -> Any:
        """The result of a started coroutine, or its error, when it is there. Runs everything that was started, like `run`."""
        try:
            with interrupts_held():
                self.selector.poll(future=future)
        except KeyboardInterrupt:
            self.interrupted = True
            raise
        if future.exception is not None:
            raise future.exception
        return future.value

    def start(self, coroutine: Question[T], *arguments: Any) -> Future:
        """Start `coroutine` concurrently; the future gives its result or its error."""
        return self.selector.call_soon_with_future(coroutine, *arguments)

    async def done_by(self, deadline: float, future: Future) -> bool:
        """Wait for `future` until `deadline` (monotonic; may be infinite), and say whether it is done."""
        if deadline == math.inf:
            await ended([future])
            return True
        wakeup = Wakeup(self)
        future.add_both(lambda _: wakeup.fire())
        while not future.is_done and (left := deadline - clock.monotonic()) > 0:
            await wakeup.wait(left)
        done: bool = future.is_done
        return done

    async def sleep(self, seconds: float) -> None:
        await self.selector.sleep(seconds)

    def close(self) -> None:
        if "selector" in self.__dict__:
            self.selector.close()


async def ended(started: Iterable[Future]) -> None:
    """Return when all have ended, also those that failed."""
    for future in started:
        with suppress(Exception):
            await future


async def together(started: Sequence[Future]) -> list[Any]:
    """The results of all, when all have ended; the first error if one failed. So no coroutine goes on after its caller."""
    await ended(started)
    return [await future for future in started]


class Wakeup:
    """Lets one coroutine wait until any of its outstanding requests is answered."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._waiting: Future | None = None
        self._fired = False
        self._timed = math.inf  # when the earliest timer fires

    def fire(self) -> None:
        """Wake the waiter, or let its next wait return at once."""
        self._fired = True
        if self._waiting is not None and not self._waiting.is_done:
            self._waiting.success(None)

    async def wait(self, seconds: float) -> None:
        """Return when fired, or after at most `seconds`. The timer of an earlier wait counts too if it ends earlier: that saves timers."""
        if not self._fired:
            self._waiting = Future()
            due = clock.monotonic() + seconds
            if due < self._timed:
                self._timed = due
                self._loop.selector.call_later(seconds, lambda: self._time_out(due))
            await self._waiting
            self._waiting = None
        self._fired = False

    def _time_out(self, due: float) -> None:
        if due == self._timed:
            self._timed = math.inf
        self.fire()
