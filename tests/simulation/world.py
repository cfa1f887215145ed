"""A world of simulated clusters with a time of its own. It moves only when everybody waits, and then to the next thing that happens.

Messages take time, and so do the steps of a cluster; a seed decides how much, and so the order of everything. Whoever waits, a selector
of an event loop or a caller of `sleep`, makes the world go on. One thread uses it.
"""

from __future__ import annotations

import heapq
import time as real
from collections.abc import Callable
from enum import Enum
from functools import partial
from itertools import count
from random import Random
from typing import Any

from tests.simulation.cluster import BEGIN, SimulatedCluster
from tests.simulation.steps import Step

# The longest time that a message or a step takes, in seconds, unless a test says otherwise.
LATENCY, STEP = 0.002, 0.005
# The longest pause until a step is tried again that had to wait for something.
AGAIN = 0.05
# How often the coordinators of a cluster look for transactions whose time is over.
LOOK = 10.0


class NothingHappens(AssertionError):
    """Somebody waits without end, and nothing is left to happen."""


class Fate(Enum):
    """What becomes of a request."""

    WHOLE = "it is answered"
    NOT_ASKED = "the connection is closed before the broker has it"
    UNANSWERED = "the broker does it, and the connection is closed before the answer"
    LATE = "the answer takes seconds"


class World:
    """`now`: seconds since 1970. `clusters`: by the addresses of their brokers. `mishaps`: how likely it is that a message has one."""

    def __init__(self, seed: int = 0, *, latency: float = LATENCY, step: float = STEP, mishaps: float = 0.0) -> None:
        self.random, self.mishaps = Random(seed), mishaps
        self.now = BEGIN / 1_000
        self.clusters: dict[tuple[str, int], tuple[SimulatedCluster, int]] = {}
        self.trace: list[str] = []  # what has happened, with the seconds since the beginning
        self.hung_up: dict[tuple[int, int], list[Callable[[], None]]] = {}  # how to close the connections, by cluster and broker
        self._latency, self._step = latency, step
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def add(self, cluster: SimulatedCluster) -> None:
        """Make a cluster part of the world."""
        for node, broker in cluster.state.brokers.items():
            self.clusters[broker.host, broker.port] = cluster, node
        self._look(cluster)

    def _look(self, cluster: SimulatedCluster) -> None:
        self.after(LOOK, lambda: self._look(cluster))

    def fail(self, cluster: SimulatedCluster, node: int) -> None:
        """A broker is gone at once, with the connections to it."""
        cluster.kill(node)
        for close in self.hung_up.pop((id(cluster), node), []):
            close()

    def note(self, text: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now - BEGIN / 1_000:.6f} {text}")

    def at(self, moment: float, act: Callable[[], None]) -> None:
        """Do something then, or now if that is over."""
        heapq.heappush(self._events, (max(moment, self.now), next(self._numbers), act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self.at(self.now + seconds, act)

    def delay(self) -> float:
        """How long the next message takes."""
        return self.random.random() * self._latency

    def fate(self) -> Fate:
        """What becomes of the next request."""
        if not self.mishaps or self.random.random() >= self.mishaps:
            return Fate.WHOLE
        return self.random.choice((Fate.NOT_ASKED, Fate.UNANSWERED, Fate.LATE))

    def wait(self, seconds: float | None) -> None:
        """Let one thing happen, or that much time pass. None: something must happen."""
        self._look_at_clusters()
        until = None if seconds is None else self.now + seconds
        if self._events and (until is None or self._events[0][0] <= until):
            moment, _, act = heapq.heappop(self._events)
            self._move(moment)
            act()
        elif until is None:
            raise NothingHappens(f"at {self.now - BEGIN / 1_000:.3f} s")
        else:
            self._move(until)

    def sleep(self, seconds: float) -> None:
        """Let time pass, and everything that happens meanwhile."""
        until = self.now + seconds
        while self.now < until:
            self.wait(until - self.now)

    def _move(self, moment: float) -> None:
        self.now = max(self.now, moment)
        for cluster in self._all():
            cluster.advance(int(self.now * 1_000))

    def _all(self) -> list[SimulatedCluster]:
        return list({id(cluster): cluster for cluster, _ in self.clusters.values()}.values())

    def _look_at_clusters(self) -> None:
        """Draw times for steps that are new, and remember when requests that wait are due."""
        for cluster in self._all():
            for step in cluster.steps:
                if not step.timed:
                    step.timed = True
                    self.after(self.random.random() * self._step, partial(self._run, cluster, step))
            for parked in cluster.state.parked:
                if not parked.timed:
                    parked.timed = True
                    self.at(parked.due / 1_000, lambda: None)

    def _run(self, cluster: SimulatedCluster, step: Step, pause: float = 0.001) -> None:
        if cluster.run(step):
            self.note(f"{cluster.state.settings.cluster_id}: {step!r}")
        else:
            self.after(pause, partial(self._run, cluster, step, min(2 * pause, AGAIN)))


class WorldTime:
    """Stands for the module `time` in code that runs in a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def monotonic(self) -> float:
        return self._world.now

    def time(self) -> float:
        return self._world.now

    def time_ns(self) -> int:
        return int(self._world.now * 1_000) * 1_000_000

    def sleep(self, seconds: float) -> None:
        self._world.sleep(seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)


class WorldSecrets:
    """Stands for the module `secrets`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def token_hex(self, size: int) -> str:
        return self._world.random.randbytes(size).hex()
