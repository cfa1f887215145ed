"""What is broken, one thing after the other: processes, brokers, connections, the target's disk. Every choice comes from the seed.

A strike at a process waits for a run whose lanes are at work, mostly until the target's coordinator knows an open transaction of a lane;
the tree is frozen while it is asked. Whatever is broken is mended before the next fault, but for killed processes and for stopped ones
that sleep until a newer run is at work.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

import psutil
from tests.drills.faults.processes import command_of, jvms_of, send, tree_of, workers_of
from tests.drills.faults.watching import OpenTransactions
from tests.drills.soak.report import Log
from tests.drills.soak.runs import Run, Schedule
from tests.drills.soak.stage import FLOW, Stage, run_again
from tools.kafka import SandboxCluster
from tools.proxy.broker_proxy import BrokerProxy
from tools.proxy.rules import END_TXN, FETCH, PRODUCE, Action, Link, Rule, Way

PAUSE_SECONDS = (1.0, 6.0)
# Until the lanes of the next run are at work.
RUN_SECONDS = 40.0
# What strikes no process meets runs at their start and their end too.
PATIENCE_SECONDS = 10.0
AIM_SECONDS = 6.0
AIMED = 0.8
ASLEEP_SECONDS = (1.0, 12.0)
# A broker that has not noticed by then that its disk is full had nothing to write.
FULL_SECONDS = 20.0
LANES = f"ferry-{FLOW}-".encode()
# Until an aimed rule is met.
MET_SECONDS = 25.0
END_TXN_ACTIONS = tuple(Action)

Strike = Callable[[], None]
Victims = Callable[[list[psutil.Process]], list[psutil.Process]]
VICTIMS: Mapping[str, Victims] = {
    "executor worker": lambda tree: workers_of(tree)[:1],
    "driver's JVM": jvms_of,
    "Python driver": lambda tree: [member for member in tree if "copy_ranges.py" in command_of(member) and member not in jvms_of(tree)],
    "ferry command": lambda tree: tree[:1],
    "whole tree": lambda tree: tree,
}


class Faults(threading.Thread):
    """Breaks one thing after the other until told to stop; `orphans` are processes that were left without their parents."""

    def __init__(self, stage: Stage, schedule: Schedule, log: Log, seed: int) -> None:
        super().__init__(name="faults", daemon=True)
        self._stage, self._schedule, self._log = stage, schedule, log
        self._chance = random.Random(seed)
        self._open = OpenTransactions(stage.target.bootstrap, LANES.decode())
        self._stopped = threading.Event()
        self._asleep: list[tuple[Run, list[psutil.Process]]] = []
        self.orphans: list[psutil.Process] = []
        self.kills_of_source: list[float] = []
        self.inside = 0

    def run(self) -> None:
        """Each kind once in a random order, then again in another one: short soaks meet all kinds too."""
        while not self._stopped.is_set():
            kinds = self._kinds()
            self._chance.shuffle(kinds)
            for name, strike in kinds:
                if self._stopped.wait(self._chance.uniform(*PAUSE_SECONDS)):
                    break
                self._wake_up()
                try:
                    strike()
                except Exception as problem:  # noqa: BLE001 - whatever it is, the soak must not go on without faults and look clean
                    self._log.problem(f"the fault {name} could not be done: {type(problem).__name__}: {problem}")
        self._wake_up(everybody=True)

    def finish(self) -> None:
        """Mend everything."""
        self._stopped.set()
        self.join()
        self._open.close()

    def _kinds(self) -> list[tuple[str, Strike]]:
        stage = self._stage
        brokers = {"source": stage.source, "target": stage.target}
        proxies = {"source": stage.source_proxy, "target": stage.target_proxy}
        kinds: list[tuple[str, Strike]] = []
        for name in VICTIMS:
            kinds += [(f"kill {name}", partial(self._kill, name)), (f"stop {name}", partial(self._put_to_sleep, name))]
        for side, cluster in brokers.items():
            kinds.append((f"kill {side} broker", partial(self._kill_broker, side, cluster)))
            kinds.append((f"stop {side} broker", partial(self._stop_broker, side, cluster)))
        for side, proxy in proxies.items():
            ways = {"slow": self._slow, "stall": self._stall, "black hole": self._black_hole}
            ways |= {"cut": self._cut, "half-close": self._half_close, "refuse": self._refuse}
            kinds += [(f"{name} {side}", partial(strike, side, proxy)) for name, strike in ways.items()]
        kinds += [("EndTxn", self._end_txn)] * 4
        kinds += [("one request", self._one_request)] * 2
        if stage.disk.mounted:
            kinds.append(("full disk", self._full_disk))
        return kinds

    def _frozen(self) -> tuple[Run, list[psutil.Process]] | None:
        """A run that stands still, if possible inside an open transaction."""
        run = self._schedule.at_work(RUN_SECONDS)
        if run is None:
            return None
        time.sleep(self._chance.uniform(0.0, 0.5))
        aimed = self._chance.random() < AIMED
        deadline = time.monotonic() + AIM_SECONDS
        while run.lives:
            if aimed and time.monotonic() < deadline and not self._open.count():
                time.sleep(0.005)
                continue
            tree = tree_of(run.process.pid)
            send(tree, signal.SIGSTOP)
            inside = self._open.count()
            if inside or not aimed or time.monotonic() > deadline:
                self.inside += bool(inside)
                return run, tree
            send(tree, signal.SIGCONT)
        return None

    def _struck(self, what: str, run: Run, tree: list[psutil.Process]) -> None:
        run.struck = what
        self._schedule.disturbed()
        self._log.fault(what, f"{len(tree)} processes, {self._open.count()} transactions open")

    def _kill(self, name: str) -> None:
        frozen = self._frozen()
        if frozen is None:
            return
        run, tree = frozen
        victims = _victims(name, tree)
        self._struck(f"kill {name}", run, tree)
        send(victims, signal.SIGKILL)
        self.orphans += [member for member in tree if member not in victims]
        send(tree, signal.SIGCONT)

    def _put_to_sleep(self, name: str) -> None:
        """Some sleep for seconds, some until a newer run is at work."""
        frozen = self._frozen()
        if frozen is None:
            return
        run, tree = frozen
        victims = _victims(name, tree)
        send([member for member in tree if member not in victims], signal.SIGCONT)
        self.orphans += tree
        if name == "whole tree" or self._chance.random() < 0.3:
            self._struck(f"stop {name} until a newer run is at work", run, tree)
            self._asleep.append((run, victims))
            # The schedule waits for this run: a newer one comes from elsewhere, as a second scheduler's would.
            self._schedule.replace(run)
            return
        self._struck(f"stop {name}", run, tree)
        self._stopped.wait(self._chance.uniform(*ASLEEP_SECONDS))
        send(victims, signal.SIGCONT)

    def _wake_up(self, *, everybody: bool = False) -> None:
        """Those that slept, once a newer run is at work (or now)."""
        for run, victims in list(self._asleep):
            if everybody or any(other.began > run.began and other.at_work.is_set() for other in self._schedule.running):
                self._asleep.remove((run, victims))
                send(victims, signal.SIGCONT)
                self._log.say("what was stopped goes on beside a newer run")

    def _kill_broker(self, side: str, cluster: SandboxCluster) -> None:
        self._aim_at_transaction()
        self._schedule.disturbed()
        self._log.fault(f"kill {side} broker", f"{self._open.count()} transactions of Ferry open")
        with self._stage.broker_lock:
            began = time.monotonic()
            cluster.kill()
            self._stopped.wait(self._chance.uniform(0.0, 5.0))
            run_again(cluster)
            if side == "source":
                self.kills_of_source.append(began)
        self._schedule.disturbed()

    def _stop_broker(self, side: str, cluster: SandboxCluster) -> None:
        self._aim_at_transaction()
        self._schedule.disturbed()
        seconds = self._chance.uniform(*ASLEEP_SECONDS)
        self._log.fault(f"stop {side} broker", f"for {seconds:.1f} s")
        with self._stage.broker_lock:
            cluster.pause()
            self._stopped.wait(seconds)
            cluster.resume()
        self._schedule.disturbed()

    def _aim_at_transaction(self) -> None:
        """Return inside an open transaction of a lane, if there is one soon."""
        if self._chance.random() < AIMED and self._schedule.at_work(PATIENCE_SECONDS) is not None:
            deadline = time.monotonic() + AIM_SECONDS
            while time.monotonic() < deadline and not self._stopped.is_set():
                if self._open.count():
                    self.inside += 1
                    return
                time.sleep(0.005)

    def _slow(self, side: str, proxy: BrokerProxy) -> None:
        link = Link(self._chance.uniform(0.01, 0.4), self._chance.uniform(0.0, 0.3), loss=self._chance.choice([0.0, 0.05]))
        self._for_a_while(f"slow {side}", f"{link}", lambda: setattr(proxy, "link", link), lambda: setattr(proxy, "link", Link()))

    def _stall(self, side: str, proxy: BrokerProxy) -> None:
        ways = self._chance.choice([tuple(Way), (Way.REQUESTS,), (Way.ANSWERS,)])
        names = ", ".join(way.value for way in ways)
        self._for_a_while(f"stall {side}", names, lambda: proxy.hold(*ways), proxy.release)

    def _black_hole(self, side: str, proxy: BrokerProxy) -> None:
        ways = self._chance.choice([tuple(Way), (Way.REQUESTS,), (Way.ANSWERS,)])
        names = ", ".join(way.value for way in ways)
        self._for_a_while(f"black hole {side}", names, lambda: proxy.drop(*ways), proxy.restore)

    def _refuse(self, side: str, proxy: BrokerProxy) -> None:
        def close() -> None:
            proxy.refuse()
            proxy.cut()

        self._for_a_while(f"refuse {side}", "no connections", close, proxy.accept)

    def _for_a_while(self, name: str, text: str, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._aim_at_transaction()
        seconds = self._chance.uniform(*ASLEEP_SECONDS)
        self._schedule.disturbed()
        self._log.fault(name, f"{text} for {seconds:.1f} s")
        begin()
        self._stopped.wait(seconds)
        end()
        self._schedule.disturbed()

    def _cut(self, side: str, proxy: BrokerProxy) -> None:
        self._aim_at_transaction()
        self._schedule.disturbed()
        self._log.fault(f"cut {side}", f"{proxy.cut()} connections")

    def _half_close(self, side: str, proxy: BrokerProxy) -> None:
        self._aim_at_transaction()
        way = self._chance.choice(list(Way))
        self._schedule.disturbed()
        self._log.fault(f"half-close {side}", f"{way.value} of {proxy.half_close(way)} connections")

    def _end_txn(self) -> None:
        """Exactly at a lane's EndTxn: its request or its answer is late, swallowed, or the last of its connection."""
        action = self._chance.choice(END_TXN_ACTIONS)
        seconds = self._chance.choice([1.0, 5.0, 15.0, 40.0])
        rule = Rule(END_TXN, action, seconds=seconds, times=self._chance.randint(1, 3), skip=self._chance.randint(0, 3), containing=LANES)
        self._at_request(f"EndTxn: {action.value}", rule, self._stage.target_proxy)

    def _one_request(self) -> None:
        """The same at a batch on its way in, or a fetch of one."""
        api, proxy = self._chance.choice([(PRODUCE, self._stage.target_proxy), (FETCH, self._stage.source_proxy)])
        action = self._chance.choice(list(Action))
        rule = Rule(api, action, seconds=self._chance.choice([1.0, 10.0]), times=2, containing=LANES if api == PRODUCE else b"")
        self._at_request(f"{'Produce' if api == PRODUCE else 'Fetch'}: {action.value}", rule, proxy)

    def _at_request(self, name: str, rule: Rule, proxy: BrokerProxy) -> None:
        proxy.add(rule)
        deadline = time.monotonic() + MET_SECONDS
        while not rule.hits and time.monotonic() < deadline and not self._stopped.is_set():
            rule.wait(0.2)
        if rule.hits:
            self._schedule.disturbed()
            self._log.fault(name, f"{rule.hits} times" + (f", {rule.seconds:.0f} s" if "delay" in name else ""))
            self._stopped.wait(self._chance.uniform(0.5, 4.0))
        proxy.remove(rule)
        if rule.hits:
            self._schedule.disturbed()

    def _full_disk(self) -> None:
        """The target's broker cannot append, takes its log directory for broken and ends; there is room again, and it is started."""
        self._aim_at_transaction()
        self._schedule.disturbed()
        target = self._stage.target
        with self._stage.broker_lock:
            self._stage.disk.fill()
            deadline = time.monotonic() + FULL_SECONDS
            while target.running and time.monotonic() < deadline:
                time.sleep(0.2)
            self._log.fault("full disk", "the target's broker goes on" if target.running else "the target's broker ended")
            self._stage.disk.relieve()
            target.kill()
            run_again(target)
        self._schedule.disturbed()


def _victims(name: str, tree: list[psutil.Process]) -> list[psutil.Process]:
    """Those of that name; a run without Spark is one process."""
    return VICTIMS[name](tree) or tree[:1]
