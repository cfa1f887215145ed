"""Faults of a world, as data: each happens once, when a process sends its n-th request, or its n-th request of one kind.

So a fault means the same if others are left out, and a seed that fails can be made smaller. To add one: a member of `Act`, and what it does
in `Faults`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from tests.simulation.cluster import SimulatedCluster
from tests.simulation.partition import NO_LEADER, Partition
from tests.simulation.processes import Process
from tests.simulation.topics import INTERNAL
from tests.simulation.unclean import UncleanElections
from tests.simulation.world import Fate, World


class Act(Enum):
    """What happens."""

    NOT_ASKED = "its connection is closed before the broker has the request"
    UNANSWERED = "the broker does it, and closes the connection before the answer"
    LATE = "the answer takes seconds"
    CRASH = "the broker does it, and fails before it answers"
    STRAY = "it sees the connection closed; the broker reads the request seconds later"
    UNREADY = "the broker does not know yet that it leads, and refuses this request"
    KILL = "it is killed before it sends the request"
    KILL_AFTER = "it is killed when it has sent the request"
    FREEZE = "it stands still before it sends the request"
    FREEZE_AFTER = "it stands still when it has sent the request"
    FAIL = "a broker fails, and comes back"
    DISK = "a disk of a broker is full, until the broker is started again"
    MOVE = "partitions move to other leaders"
    LAG = "followers copy nothing for a while; then some of them lead"
    OFFLINE = "partitions of records have no leader for a while"
    EXPIRE = "the source deletes its oldest records"
    UNCLEAN = "partitions lose their last records, in an unclean election after a while"
    CLOCK = "its wall clock jumps, and is set right again"
    CUT_OFF = "a broker loses the others, goes on as the leader that it was, and comes back"


OF_MESSAGES = {
    Act.NOT_ASKED: Fate.NOT_ASKED,
    Act.UNANSWERED: Fate.UNANSWERED,
    Act.LATE: Fate.LATE,
    Act.CRASH: Fate.CRASH,
    Act.STRAY: Fate.STRAY,
    Act.UNREADY: Fate.UNREADY,
}
OF_PROCESSES = (Act.KILL, Act.KILL_AFTER, Act.FREEZE, Act.FREEZE_AFTER)
OF_BROKERS = (Act.FAIL, Act.DISK, Act.MOVE, Act.LAG, Act.OFFLINE, Act.EXPIRE, Act.UNCLEAN, Act.CUT_OFF)
# What happens at every election: Ferry overcomes it without a word.
USUAL = frozenset({Act.UNREADY})
_OF_ONE_BROKER = {*OF_MESSAGES, *OF_PROCESSES, Act.FAIL, Act.DISK, Act.OFFLINE, Act.EXPIRE, Act.CLOCK}
# By how many hours a clock jumps.
_HOURS = (-13.0, -1.0, 1.0, 13.0)


@dataclass(frozen=True)
class Fault:
    """`who` sends its request number `nth` (from 1) of this kind (empty: of any). `place`: chooses a broker or partitions."""

    act: Act
    who: str
    request: str
    nth: int
    seconds: float = 0.0  # how long it lasts
    cluster: str = "target"
    place: int = 0

    @property
    def hours(self) -> float:
        """By how many hours a clock jumps."""
        return _HOURS[self.place % len(_HOURS)] if self.act is Act.CLOCK else 0.0

    def __str__(self) -> str:
        lasts = f" for {self.seconds:.3f} s" if self.seconds else ""
        lasts = f" by {self.hours:.0f} h{lasts}" if self.act is Act.CLOCK else lasts
        where = f" ({self.cluster}, {self.place})" if self.act in OF_BROKERS else ""
        return f"{self.who}, request {self.nth}{f' of {self.request}' if self.request else ''}: {self.act.value}{lasts}{where}"


# In seconds.
LONGEST_LAG = 25.0
# Kinds of requests that faults are aimed at, by protocol, each with how often, and with the largest number. See `kinds_of`.
_BOTH = (
    ("", 4, 150),
    ("InitProducerId run", 2, 4),
    ("InitProducerId lane", 3, 20),
    ("EndTxn commit lane", 6, 3),
    ("EndTxn abort lane", 2, 2),
    ("EndTxn commit run", 2, 3),
    ("EndTxn abort run", 1, 3),
    ("Produce lane", 6, 6),
    ("Produce run", 2, 3),
    ("TxnOffsetCommit", 4, 2),
    ("Fetch", 3, 20),
    ("OffsetFetch", 2, 3),
    ("ListOffsets", 1, 6),
    ("DescribeProducers", 1, 2),
)
_AIMS = {
    1: (*_BOTH, ("AddPartitionsToTxn lane", 2, 4), ("AddOffsetsToTxn", 1, 2)),
    2: _BOTH,
    0: (("", 6, 120), ("Produce", 8, 12), ("OffsetCommit", 4, 2), ("InitProducerId", 2, 6), ("Fetch", 2, 20)),
}
_WEIGHTS = {
    Act.NOT_ASKED: 2,
    Act.UNANSWERED: 4,
    Act.LATE: 1,
    Act.CRASH: 2,
    Act.STRAY: 5,
    Act.UNREADY: 2,
    Act.KILL: 4,
    Act.KILL_AFTER: 4,
    Act.FREEZE: 4,
    Act.FREEZE_AFTER: 2,
    Act.FAIL: 3,
    Act.DISK: 2,
    Act.MOVE: 3,
    Act.LAG: 3,
    Act.OFFLINE: 1,
    Act.EXPIRE: 2,
    Act.UNCLEAN: 1,
    Act.CLOCK: 2,
    Act.CUT_OFF: 3,
}


def drawn_fault(chance: Random, names: list[str], protocol: int, *, brokers: bool) -> Fault:
    """A fault of one of these processes. `protocol`: of transactions; 0: the flow has none. `brokers`: whether there are several."""
    acts = [act for act in _WEIGHTS if brokers or act in _OF_ONE_BROKER]
    act = chance.choices(acts, [_WEIGHTS[one] for one in acts])[0]
    request, _, most = chance.choices(_AIMS[protocol], [often for _, often, _ in _AIMS[protocol]])[0]
    # Most of them last about as long as a run, others longer than any time-out.
    seconds = chance.choice((0.05, 0.3, 1.0, 5.0, 30.0, 70.0)) * (0.2 + chance.random()) if act not in OF_MESSAGES else 0.0
    cluster = "source" if chance.random() < 0.2 or act in {Act.EXPIRE, Act.UNCLEAN} else "target"
    nth = 1 + int(most * chance.random() ** 3)
    return Fault(act, chance.choice(names), request, nth, seconds, cluster, chance.randrange(1_000))


def kinds_of(request: Any) -> list[str]:
    """The kinds to which a request belongs: any; its name; and for transactions how it ends and whose it is, a lane's or the run's.

    Without transactions, a Produce to one of Ferry's own topics is a kind, too.
    """
    name = str(request.name).removesuffix("Request")
    own = getattr(request, "transactional_id", None) or getattr(request, "v3_and_below_transactional_id", None)
    if not own:
        topics = {topic for topic, _, _ in request.batches} if name == "Produce" else ()
        return ["", name, *(f"{name} {which}" for which in ("ledger", "state") if any(f"-{which}." in topic for topic in topics))]
    ends = f" {'commit' if request.committed else 'abort'}" if name == "EndTxn" else ""
    return ["", name, f"{name}{ends} {'run' if own.endswith('-run') else 'lane'}"]


class Faults:
    """Carries out the faults of a plan in a world. `happened`: those that did."""

    def __init__(self, world: World, clusters: dict[str, SimulatedCluster], plan: Iterable[Fault]) -> None:
        self._world, self._clusters = world, clusters
        self._plan: dict[tuple[str, str, int], list[Fault]] = {}
        for fault in plan:
            self._plan.setdefault((fault.who, fault.request, fault.nth), []).append(fault)
        self._sent: Counter[tuple[str, str]] = Counter()
        self.happened: list[Fault] = []
        self._leaderless: list[tuple[SimulatedCluster, Partition, int]] = []  # and who led it
        self.unclean = UncleanElections(world)
        self.over = False

    def fate(self, who: str, request: Any) -> Fate:
        """Called before a request is sent."""
        fate = Fate.WHOLE
        for name in kinds_of(request):
            self._sent[who, name] += 1
            for fault in self._plan.get((who, name, self._sent[who, name]), ()):
                fate = self._meet(fault) or fate
        return fate

    def _meet(self, fault: Fault) -> Fate | None:
        if self.over:
            return None
        self.happened.append(fault)
        self._world.note(lambda: f"FAULT {fault}")
        process = self._world.current
        if fault.act in OF_PROCESSES and process is not None:
            self._stop(fault, process)
        elif fault.act is Act.CLOCK and process is not None:
            self._set_clock(process, 3_600 * fault.hours, fault.seconds)
        elif fault.act in OF_BROKERS:
            self._disturb(fault, self._clusters[fault.cluster])
        return OF_MESSAGES.get(fault.act)

    def _set_clock(self, process: Process, error: float, seconds: float) -> None:
        process.clock_error = error
        self._world.after(seconds, lambda: setattr(process, "clock_error", 0.0))

    def _stop(self, fault: Fault, process: Process) -> None:
        if fault.act is Act.KILL:
            process.kill()
        elif fault.act is Act.KILL_AFTER:
            self._world.at(self._world.now, process.kill)
        else:
            stop = process.freeze
            if fault.act is Act.FREEZE:
                stop()
            else:
                self._world.at(self._world.now, stop)
            self._world.after(fault.seconds, lambda: self._thaw(process))

    def _thaw(self, process: Process) -> None:
        if process.alive:
            self._world.note(f"{process.name} goes on")
        process.thaw()

    def _disturb(self, fault: Fault, cluster: SimulatedCluster) -> None:
        brokers = [node for node, broker in cluster.state.brokers.items() if broker.up and broker.image is None]
        if fault.act is Act.MOVE:
            self._world.at(self._world.now, lambda: self._move(cluster, fault.place))
        elif fault.act is Act.EXPIRE:
            self._world.at(self._world.now, lambda: self._expire(cluster, fault.place))
        elif fault.act is Act.UNCLEAN:
            self._world.at(self._world.now, lambda: self._lose(cluster, fault.place, fault.seconds))
        elif fault.act is Act.LAG:
            self._world.at(self._world.now, lambda: self._lag(cluster, fault.place, fault.seconds))
        elif fault.act is Act.OFFLINE:
            self._world.at(self._world.now, lambda: self._take_leaders(cluster, fault.place, fault.seconds))
        elif len(brokers) > 1 or fault.act in {Act.FAIL, Act.DISK}:
            node = brokers[fault.place % len(brokers)] if brokers else None
            if node is not None:
                self._world.at(self._world.now, lambda: self._take_away(fault, cluster, node))

    def _take_away(self, fault: Fault, cluster: SimulatedCluster, node: int) -> None:
        if not self._is_there(cluster, node):
            return
        if fault.act is Act.FAIL:
            self._world.fail(cluster, node)
        elif fault.act is Act.DISK:
            parts = [part for topic in cluster.state.topics.values() for part in topic.partitions if node in part.replicas]
            cluster.fail_disk(node, *parts[fault.place % 2 :: 2])
        else:
            cluster.cut_off(node)
        self._world.after(fault.seconds, lambda: self._bring_back(cluster, node))

    def _bring_back(self, cluster: SimulatedCluster, node: int) -> None:
        broker = cluster.state.brokers[node]
        if any(node in part.offline for topic in cluster.state.topics.values() for part in topic.partitions):
            self._world.fail(cluster, node)
        if broker.up and broker.image is None:
            return
        self._world.note(f"broker {node} of {cluster.state.settings.cluster_id} is back")
        if broker.up:
            cluster.join_again(node)
        else:
            cluster.start(node)

    def _chosen(self, cluster: SimulatedCluster, place: int) -> list[Partition]:
        """Every so many of the partitions that have a leader."""
        every = place % 3 + 1
        parts = [part for topic in cluster.state.topics.values() for part in topic.partitions if part.led.leader != NO_LEADER]
        return parts[place % every :: every]

    def _move(self, cluster: SimulatedCluster, place: int) -> None:
        """The other leaders are in sync, but perhaps not up to the last batch."""
        for part in self._chosen(cluster, place):
            there = [node for node in part.led.in_sync if node != part.led.leader and not cluster.lacks(node, part)]
            if there:
                leader = there[place % len(there)]
                part.waiting.discard(leader)
                cluster.elect(part, leader)

    def _expire(self, cluster: SimulatedCluster, place: int) -> None:
        """The bytes stay in the log, so that the oracles still know the records."""
        for part in self._chosen(cluster, place):
            if not part.topic.startswith(("__", "mm2-")):  # Ferry keeps its own topics
                part.log.delete_before(part.log.start + place % (max(part.log.stable_end, part.log.start) - part.log.start + 1))
                part.replicate()
        cluster.state.look_at_parked()

    def _lose(self, cluster: SimulatedCluster, place: int, seconds: float) -> None:
        """At most as long as followers lag, so that it happens before the faults are over."""
        chosen = [part for part in self._chosen(cluster, place) if not part.topic.startswith(("__", "mm2-"))]
        self.unclean.begin(cluster, chosen, min(seconds, LONGEST_LAG))

    def _lag(self, cluster: SimulatedCluster, place: int, seconds: float) -> None:
        """A follower that lags for longer than replica.lag.time.max.ms would not be in sync any more."""
        parts = self._chosen(cluster, place)
        for part in parts:
            part.waiting |= {node for node in part.led.in_sync if node != part.led.leader}
        self._world.after(min(seconds, LONGEST_LAG), lambda: self._end_lag(cluster, parts, place))

    def _end_lag(self, cluster: SimulatedCluster, parts: list[Partition], place: int) -> None:
        """The followers copy what is missing; or one of them that is in sync leads from now on, with or without the last batches."""
        for number, part in enumerate(parts, place):
            followers = [node for node in part.replicas if node in part.waiting and not cluster.lacks(node, part)]
            heir = next((node for node in followers if node in part.led.in_sync), None)
            if heir is not None and number % 2 and part.led.leader != NO_LEADER:
                if number % 4 == 1:
                    part.catch_up(heir)
                part.waiting.discard(heir)
                cluster.elect(part, heir)
            for node in followers:
                part.catch_up(node)
        cluster.state.look_at_parked()

    def _take_leaders(self, cluster: SimulatedCluster, place: int, seconds: float) -> None:
        """As when the only replica in sync has lost its disk. The last leader leads again, if nobody else does by then."""
        for part in self._chosen(cluster, place):
            if part.topic not in INTERNAL:
                leader = part.led.leader
                cluster.elect(part, NO_LEADER)
                self._leaderless.append((cluster, part, leader))
        self._world.after(seconds, lambda: self._give_leaders(cluster))

    def _give_leaders(self, cluster: SimulatedCluster) -> None:
        for one in [one for one in self._leaderless if one[0] is cluster and not cluster.lacks(one[2], one[1])]:
            self._leaderless.remove(one)
            _, part, leader = one
            if part.led.leader == NO_LEADER:
                cluster.elect(part, leader)
            for node in [node for node in part.waiting if not cluster.lacks(node, part)]:
                part.catch_up(node)  # a lag that ended while nobody led

    @staticmethod
    def _is_there(cluster: SimulatedCluster, node: int) -> bool:
        return cluster.state.brokers[node].up and cluster.state.brokers[node].image is None

    def heal(self) -> None:
        """No more faults, and every broker comes back."""
        self.over = True
        self.unclean.heal()
        for cluster in self._clusters.values():
            for node in cluster.state.brokers:
                self._bring_back(cluster, node)
            self._give_leaders(cluster)
