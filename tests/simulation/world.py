"""A world of simulated clusters and processes with a time of its own. It moves only when everybody waits, and then to what happens next.

Messages take time, and so do the steps of a cluster; a seed decides how much, and so the order of everything. Whoever waits, a selector
of an event loop or a caller of `sleep`, makes the world go on. A process gives its turn away for that; code outside of processes lets the
next thing happen itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import Enum
from functools import partial
from itertools import count
from random import Random
from typing import Any

from greenlet import getcurrent
from tests.simulation.cluster import BEGIN, SimulatedCluster
from tests.simulation.processes import IdleEvent, IdleThread, Process
from tests.simulation.selecting import WorldSelector
from tests.simulation.steps import Step

# The longest time that a message or a step takes, in seconds, unless a test says otherwise.
LATENCY, STEP = 0.002, 0.005
# The longest that a broker is gone which has crashed.
CRASHED = 5.0
# The longest pause until a step is tried again that had to wait for something.
AGAIN = 0.05
# How often the coordinators of a cluster look for transactions whose time is over.
LOOK = 10.0


# No world of a seed has a tenth of so many events.
MOST_EVENTS = 50_000


class TooMuchHappens(AssertionError):
    """Something goes on without end."""


class NothingHappens(AssertionError):
    """Somebody waits without end, and nothing is left to happen."""


class Fate(Enum):
    """What becomes of a request."""

    WHOLE = "it is answered"
    NOT_ASKED = "the connection is closed before the broker has it"
    UNANSWERED = "the broker does it, and the connection is closed before the answer"
    LATE = "the answer takes seconds"
    CRASH = "the broker does it, and fails before it answers"
    UNREADY = "the broker does not know yet that it leads, and refuses what only a leader does"
    STRAY = "the client sees the connection closed; the broker reads the request, and what follows it, seconds later"


class World:
    """`now`: seconds since 1970. `clusters`: by the addresses of their brokers. `mishaps`: how likely it is that a message has one."""

    def __init__(self, seed: int = 0, *, latency: float = LATENCY, step: float = STEP, mishaps: float = 0.0) -> None:
        self.chance, self.mishaps = Random(seed), mishaps
        self.now = BEGIN / 1_000
        self.clusters: dict[tuple[str, int], tuple[SimulatedCluster, int]] = {}
        self.trace: list[tuple[float, str | Callable[[], str]]] = []  # what has happened, and when
        self.warnings: list[str] = []  # of Ferry
        self.hung_up: dict[tuple[int, int], list[Callable[[], None]]] = {}  # how to close the connections, by cluster and broker
        self.fate: Callable[[str, Any], Fate] = self._mishap  # of a request, by the name of the process that sends it
        self.hub = getcurrent()
        self.current: Process | None = None
        self.processes: list[Process] = []
        self._all: list[SimulatedCluster] = []
        self._latency, self._step = latency, step
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def add(self, cluster: SimulatedCluster) -> None:
        """Make a cluster part of the world."""
        self._all.append(cluster)
        for node, broker in cluster.state.brokers.items():
            self.clusters[broker.host, broker.port] = cluster, node
        self._look(cluster)

    def _look(self, cluster: SimulatedCluster) -> None:
        self.after(LOOK, lambda: self._look(cluster))

    def begin(self, name: str, work: Callable[[], Any]) -> Process:
        """A process that does `work`."""
        self.processes.append(Process(self, name, work))
        return self.processes[-1]

    def fail(self, cluster: SimulatedCluster, node: int) -> None:
        """A broker is gone at once, with the connections to it."""
        cluster.kill(node)
        for close in self.hung_up.pop((id(cluster), node), []):
            close()

    def crash(self, cluster: SimulatedCluster, node: int) -> None:
        """A broker fails, and comes back after some seconds."""
        self.fail(cluster, node)
        self.after(self.chance.random() * CRASHED, lambda: None if cluster.state.brokers[node].up else cluster.start(node))

    def note(self, text: str | Callable[[], str]) -> None:
        """Add a line to the trace. A function gives the text when somebody reads it."""
        self.trace.append((self.now - BEGIN / 1_000, text))

    def lines(self) -> list[str]:
        """The trace as text, with the seconds since the beginning."""
        return [f"{moment:.6f} {text if isinstance(text, str) else text()}" for moment, text in self.trace]

    def at(self, moment: float, act: Callable[[], None]) -> None:
        """Do something then, or now if that is over."""
        heapq.heappush(self._events, (max(moment, self.now), next(self._numbers), act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + max(seconds, 0.0), next(self._numbers), act))

    def delay(self) -> float:
        """How long the next message takes."""
        return self.chance.random() * self._latency

    def _mishap(self, _: str, __: object) -> Fate:
        if not self.mishaps or self.chance.random() >= self.mishaps:
            return Fate.WHOLE
        return self.chance.choice((Fate.NOT_ASKED, Fate.UNANSWERED, Fate.LATE, Fate.STRAY))

    def wait(self, seconds: float | None, *, hears: bool = True) -> None:
        """Let that much time pass (None: until something happens). `hears`: a message of its own ends the wait of a process."""
        if self.current is not None:
            self.current.wait(seconds, hears=hears)
        else:
            self._go_on(seconds)

    def _go_on(self, seconds: float | None) -> None:
        """Let one thing happen, or that much time pass."""
        for cluster in self._all:
            if cluster.state.steps.new or cluster.state.parked:
                self._look_at(cluster)
        until, events = None if seconds is None else self.now + seconds, self._events
        if events and (until is None or events[0][0] <= until):
            moment, number, act = heapq.heappop(events)
            if number > MOST_EVENTS:
                raise TooMuchHappens(f"at {self.now - BEGIN / 1_000:.3f} s")
            self._move(moment)
            act()
        elif until is None:
            raise NothingHappens(f"at {self.now - BEGIN / 1_000:.3f} s")
        else:
            self._move(until)

    def sleep(self, seconds: float) -> None:
        """Let time pass, and everything that happens meanwhile."""
        if self.current is not None:
            self.current.wait(seconds, hears=False)
            return
        until = self.now + seconds
        while self.now < until:
            self._go_on(until - self.now)

    def until_ended(self, process: Process, seconds: float) -> bool:
        """Let things happen until the process has ended, at most that long; whether it has."""
        until = self.now + seconds
        while process.alive and self.now < until:
            self._go_on(until - self.now)
        return not process.alive

    def end(self) -> None:
        """Kill what still runs: its memory is given back."""
        for process in self.processes:
            process.kill()
            process.leave()  # one that was killed while it sent still waits

    def forget(self) -> None:
        """Drop all that it holds: without this, the garbage collector would have to find it. Nobody may use it afterwards."""
        vars(self).clear()

    def _move(self, moment: float) -> None:
        self.now = max(self.now, moment)
        milliseconds = int(self.now * 1_000)
        for cluster in self._all:
            if cluster.state.now < milliseconds:
                cluster.advance(milliseconds)

    def _look_at(self, cluster: SimulatedCluster) -> None:
        """Draw times for steps that are new, and remember when requests that wait are due."""
        new, cluster.state.steps.new = cluster.state.steps.new, []
        for step in new:
            self.after(self.chance.random() * self._step, partial(self._run, cluster, step))
        for parked in cluster.state.parked:
            if not parked.timed:
                parked.timed = True
                self.at(parked.due / 1_000, lambda: None)

    def _run(self, cluster: SimulatedCluster, step: Step, pause: float = 0.001) -> None:
        if cluster.run(step):
            self.note(lambda: f"{cluster.state.settings.cluster_id}: {step!r}")
        else:
            self.after(pause, partial(self._run, cluster, step, min(2 * pause, AGAIN)))

    # What stands for Python's time, under the names of `ferry.clock` (virtual_time.Stand).

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        """The wall clock of the process that asks."""
        return self.now + (self.current.clock_error if self.current else 0.0)

    def time_ns(self) -> int:
        return int(self.time() * 1_000) * 1_000_000

    def process_time(self) -> float:
        """Work takes no time."""
        return 0.0

    def token_hex(self, count: int) -> str:
        return self.chance.randbytes(count).hex()

    def thread(self, **given: Any) -> IdleThread:
        return IdleThread(**given)

    def event(self) -> IdleEvent:
        return IdleEvent()

    def selector(self) -> WorldSelector:
        return WorldSelector(self)
