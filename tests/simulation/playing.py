"""Plays a scenario: builds its world, lets the runs run, brings everything to rest, and asks the oracles.

`airflow` is the process that begins the runs, as an orchestrator does. When the rounds are over, faults end, one more run copies what is
left, and everything that was late arrives. Then nothing may be missing, and a last run must go on from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.faults import LONGEST_LAG, OF_BROKERS, OF_PROCESSES, USUAL, Act, Fault, Faults
from tests.simulation.ferry_in_a_world import entered, flows_between, run_flow
from tests.simulation.oracles import Copy, committed, log_of, receipts, receipts_by, translated, violations, wanted
from tests.simulation.processes import Process
from tests.simulation.proofs import SOON, Proofs
from tests.simulation.reading import let_read, misplaced, unequal, unseen, verified
from tests.simulation.reading import translated as grouped
from tests.simulation.releases import Release
from tests.simulation.scenario import OLD, Kind, Round, Scenario
from tests.simulation.spoiling import spoil
from tests.simulation.state import Settings
from tests.simulation.wires import STRAY_SECONDS
from tests.simulation.world import Fate, World
from tests.simulation.writing import SourceWriter, Write

from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode, FenceLost, FerryError, RetryRule, SourceTruncated, Superseded, TransactionHangs, error_named
from ferry.ledger.run_report import RunReport

TOPIC = "orders"
# No run takes longer, whatever fails: Ferry waits at most about a minute for anything, a few times.
LONGEST_RUN = 1_200.0
# A broker that is back needs less until everything is as before, and followers that lag copy again by then.
HEALED = LONGEST_LAG + 5.0
LAST_RUNS = 8
# How the values begin that are written to either side, if flows copy in both directions.
AHEAD, BACK = b"a", b"b"
# For two flows in both directions: what the records are that either side holds before the first run.
BOTH = (
    "replication.policy.class = IdentityReplicationPolicy",
    "a->b.ferry.on.unexplained = local",
    "heartbeats.replication.enabled = false",
)
# How long to wait for markers before the next look, in seconds.
UNMARKED = 0.05
# One seed of so many is read at the end, which takes longer than the oracles.
READ_EVERY = 10
# A run that nothing holds up learns so soon that another one has taken the flow.
KNOWN = 0.5
# The largest batch of a narrow topic, in bytes: about five records.
SMALL_BATCH = 250
# Older releases have no such feature.
KNOWS_TRANSACTION_VERSION = (4, 0)


@dataclass
class Outcome:
    """What came of a scenario. `problems`: what does not hold; empty: all is well."""

    scenario: Scenario
    problems: list[str]
    world: World
    happened: list[Fault] = field(default_factory=list)


@cache
def _flows(source_brokers: int, target_brokers: int, *, both: bool) -> tuple[Flow, ...]:
    """The flow, and if `both` the one in the other direction."""
    source, target = _cluster("source", source_brokers), _cluster("target", target_brokers)
    replicas = min(3, target_brokers)
    lines = [f"a->b.topics = {TOPIC}", f"replication.factor = {replicas}", f"ferry.internal.topics.replication.factor = {replicas}"]
    if both:
        factor = f"b->a.ferry.internal.topics.replication.factor = {min(3, source_brokers)}"
        lines += ["b->a.enabled = true", f"b->a.topics = {TOPIC}", factor, *BOTH]
    with tempfile.TemporaryDirectory() as directory:
        return flows_between(source, target, Path(directory), *lines)


def _cluster(name: str, brokers: int, transaction_version: int = 2, release: Release = (4, 3)) -> SimulatedCluster:
    return SimulatedCluster(
        Settings(
            cluster_id=name,
            port=9_000 if name == "source" else 9_100,
            seed=0 if name == "source" else 1,
            brokers=tuple(range(1, brokers + 1)),
            state_replicas=min(3, brokers),
            release=release,
            transaction_version=transaction_version if release >= KNOWS_TRANSACTION_VERSION else 0,
        )
    )


class Play:
    """One scenario, once."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.problems = scenario, list[str]()
        self.world = World(scenario.seed, mishaps=scenario.mishaps)
        self.source = _cluster("source", scenario.source_brokers, scenario.transaction_version if scenario.both else 2)
        self.target = _cluster("target", scenario.target_brokers, scenario.transaction_version, scenario.release)
        for cluster in (self.source, self.target):
            self.world.add(cluster)
        own = {"max_message_bytes": str(SMALL_BATCH)} if scenario.narrow else {}
        self.source.create_topic(TOPIC, scenario.partitions, min(3, scenario.source_brokers), **own)
        flow, *back = _flows(scenario.source_brokers, scenario.target_brokers, both=scenario.both)
        self.faults = Faults(self.world, {"source": self.source, "target": self.target}, scenario.faults)
        self._mishap, self.world.fate = self.world.fate, self._fate
        others = any(write.back for entry in scenario.rounds for write in entry.later)
        self._watch(flow, AHEAD if back or others else b"")
        self._others = SourceWriter(self.world, self.target, self.copy.remote, BACK)
        self.ways: tuple[Play, ...] = (self, *(_WayBack(self, one) for one in back))

    def _watch(self, flow: Flow, mark: bytes) -> None:
        """Begin with a flow from `source` to `target`."""
        flow = replace(flow, exactly_once=self.scenario.exactly_once, on_recreate="restart" if self.scenario.restarts else "fail")
        self.flow = replace(flow, memory_bytes=6_000, transaction_bytes=400) if self.scenario.small else flow
        self.copy = Copy(self.flow, self.source, self.target, TOPIC, mark, self.faults.unclean.gone)
        self.writer = SourceWriter(self.world, self.source, TOPIC, mark)
        self._took: dict[str, float] = {}  # when a process asked for the flow's id
        self._has_lanes: set[str] = set()
        self._holder = "", 0.0  # who asked for the flow's id last, and when
        self._tried_again: list[str] = []  # what runs say about lanes that they have lost
        self._unsure: set[str] = set()  # processes with a request for an id that came late, or had no answer
        self._proofs = Proofs()
        self._follow: set[str] = set()  # processes that may take the flow again
        self._tries: dict[str, list[Process]] = {}  # processes by run id
        self.started: set[str] = set()  # names of processes

    def _fate(self, who: str, request: Any) -> Fate:
        """Of a request. Only runs that began before the faults were over have mishaps."""
        fate = self.faults.fate(who, request)
        if fate is Fate.WHOLE and who.startswith("run") and not self.faults.over:
            fate = self._mishap(who, request)
        if isinstance(request, InitProducerIdRequest | EndTxnRequest):
            way = next(one for one in self.ways if who in one.started)
            way._proofs.note(who, request, fate, self.world.now, way._holder)
        if isinstance(request, InitProducerIdRequest):
            way._note_taking(who, request)
            way._unsure |= {who} if fate is not Fate.WHOLE else set()
        return fate

    def _note_taking(self, who: str, request: InitProducerIdRequest) -> None:
        """Remember when a process asked for the flow's id, for the last time before it asked for lanes."""
        if request.transactional_id and request.producer_id < 0:
            self._note_holder(who, request)
        if not str(request.transactional_id).endswith("-run"):
            self._has_lanes.add(who)
        elif who not in self._has_lanes and request.producer_id < 0:
            self._took[who] = self.world.now

    def _note_holder(self, who: str, request: InitProducerIdRequest) -> None:
        """A process takes an id. Lanes belong to the run that has taken the flow last."""
        if str(request.transactional_id).endswith("-run"):
            self._holder = who, self.world.now
            return
        holder, since = self._holder
        disturbed = self.scenario.mishaps or any(one.who == who or one.act in {*OF_BROKERS, Act.CRASH} for one in self.faults.happened)
        # Of two requests that were sent at nearly the same time, the coordinator may have read either one first.
        is_older = self._took.get(who, 0.0) < since - SOON
        if holder != who and is_older and self.world.now - since > KNOWN and not disturbed:
            self.problems.append(f"{who} takes a lane, although {holder} has held the flow for {self.world.now - since:.1f} s")

    def play(self) -> Outcome:
        with entered(self.world, framed=self.scenario.framed), self._crashes_told():
            airflow = self.world.begin("airflow", self._rounds)
            for way in self.ways:
                way._airflow = airflow
            if not self.world.until_ended(airflow, 20 * LONGEST_RUN):
                self.problems.append("airflow does not end")
            if airflow.problem is not None:
                raise airflow.problem
        return Outcome(self.scenario, self.problems, self.world, self.faults.happened)

    @contextmanager
    def _crashes_told(self) -> Iterator[None]:
        try:
            yield
        except Exception as problem:  # noqa: BLE001 - a defect of the simulation shows in the trace, too
            self.problems.append(f"the world stops: {type(problem).__name__}: {problem}")

    def _rounds(self) -> None:
        if self.scenario.both:
            self._begin_both()
        for place, entry in enumerate(self.scenario.rounds):
            self._write_now(entry.writes)
            process = self.ways[entry.back]._begin(f"run-{place}", entry)
            self._write_later(entry)
            self._wait(process, LONGEST_RUN if entry.beside is None else entry.beside)
        self._come_to_rest()

    def _begin_both(self) -> None:
        """Both sides hold records. The first run of the first flow is told that these are local; then each flow knows of the other."""
        for way in self.ways:
            way.writer.write([Write(partition, 1) for partition in range(self.scenario.partitions)])
        for way in self.ways:
            way._copy_rest("first")

    def _write_later(self, entry: Round) -> None:
        for number, write in enumerate(entry.later, 1):
            self.world.after(number * entry.pause, partial(self._write, write))

    def _write(self, write: Write) -> None:
        self.world.begin("writer", lambda: self._write_now([write]))

    def _write_now(self, writes: Iterable[Write]) -> None:
        for write in writes:
            writer = self._others if write.back and not self.scenario.both else self.ways[write.back].writer
            writer.write([write])

    def _begin(self, name: str, entry: Round) -> Process:
        follows = None
        if entry.kind is Kind.FOLLOWS:
            follows = datetime.fromtimestamp(self.world.now + entry.seconds, UTC)
            self._follow.add(name)
        request = RunRequest(self.flow.name, f"id-{entry.run}", follow_until=follows)
        if entry.kind is Kind.BACKFILL:
            until = datetime.fromtimestamp(self.world.now, UTC)
            request = replace(request, backfill=True, since=until - timedelta(hours=1), until=until)
        return self._start(name, request, entry.lanes)

    def _start(self, name: str, request: RunRequest, lanes: int | None = None) -> Process:
        self.world.note(f"{name} begins, with run id {request.run_id}")
        stable = [log_of(part).stable_end for part in self.source.topic(TOPIC).partitions]
        process = self.world.begin(name, lambda: run_flow(replace(self.flow, lanes=lanes), request, partial(self._hear, name)))
        self._tries.setdefault(request.run_id, []).append(process)
        self.started.add(name)
        process.changed = lambda: self._changed(process, request, stable)
        return process

    def _hear(self, name: str, text: str) -> None:
        self.world.note(f"{name} says: {text}")
        if text.startswith("trying"):
            self._tried_again.append(text)

    def _changed(self, process: Process, request: RunRequest, stable: list[int]) -> None:
        """It has ended, was killed, or stands still."""
        if process.ended and not process.killed:
            self._look_at(process, request, stable)
        self._airflow.tell(lambda: None)

    def _look_at(self, process: Process, request: RunRequest, stable: list[int]) -> None:
        """Whether a run that has ended tells the truth."""
        name, report = process.name, process.result
        if process.problem is not None:
            self.world.note(f"{name} ends: {type(process.problem).__name__}: {process.problem}")
            if not isinstance(process.problem, FerryError):
                raise process.problem
            self._needs_nobody(name, [type(process.problem).__name__])
            if isinstance(process.problem, Superseded):
                self._taken_over(process)
            return
        assert isinstance(report, RunReport)
        problem = next(iter(report.problems()), None)
        self.world.note(f"{name} reports {report.records} records, {report.exit_code.name}{f': {problem}' if problem else ''}")
        self._needs_nobody(name, [failure.error for failure in report.failed])
        if report.superseded or report.taken_over is not None:
            self._taken_over(process)
        tries = [other for other in self._tries[request.run_id] if other is not process and (other.alive or other.over > process.began)]
        told = sum(one.counters.records for one in receipts_by(self.copy, request.run_id, receipts(self.copy)))
        # Another try at the same time may go on copying. A replaced leader of the ledger lacks the last receipts.
        few = told > report.records and self.faults.leaders_hidden(self.target, process.began)
        if told != report.records and not tries and not few:
            self.problems.append(f"{name} reports {report.records} records, and its receipts {told}")
        if self.faults.unclean.gone:
            return  # what was there when it began may be gone; see _write_more
        if report.exit_code is ExitCode.DONE and report.taken_over is None and not request.backfill and not self._source_is_hidden():
            self._when_marked(lambda: self._has_copied(name, stable))

    def _source_is_hidden(self) -> bool:
        """Whether a broker of the source was cut off: no consumer knows what its replaced leaders lack. A later run copies it."""
        return any(one.act is Act.CUT_OFF and (one.cluster == "source" or self.scenario.both) for one in self.faults.happened)

    def _when_marked(self, act: Callable[[], None]) -> None:
        """When all decided transactions of the target have their markers: a commit is answered before, and nobody sees its records yet."""
        transactions = self.target.transactions
        if any(map(transactions.is_decided, transactions.ids)):
            self.world.after(UNMARKED, lambda: self._when_marked(act))
        else:
            act()

    def _has_copied(self, name: str, stable: list[int]) -> None:
        """A run that reports success has copied what was there when it began; `stable`: up to where."""
        known = receipts(self.copy)
        for (source, target), end in zip(self.copy.partitions(), stable, strict=True):
            due = [record for record in wanted(self.copy, source, known) if record.offset < end]
            if len(self.copy.own(target, all_decided=self.scenario.both)) < len(due):
                self.problems.append(f"{name} reports success, but {self.copy.remote}-{target.index} lacks records")
            reached = max((one.upstream_end for one in known if (one.topic, one.partition) == source.key), default=0)
            if len(due) == len(committed(target)) and not (
                self.scenario.both or self.faults.unclean.gone
            ):  # otherwise other runs copy meanwhile
                self.problems += translated(self.copy, source, target, known, due)
            if reached < end:
                self.problems.append(f"{name} reports success, but the receipts of {TOPIC}-{source.index} end at {reached}, not {end}")

    def _taken_over(self, process: Process) -> None:
        """A run says that another one has taken the flow over: then a newer one was there, or what an older one sent came late."""
        others = [other for tries in self._tries.values() for other in tries if other is not process]
        late = {other.name for other in others if other.killed or other.name in self._unsure}
        there = [other for other in others if other.alive or other.over + STRAY_SECONDS * (other.name in late) >= process.began]
        mine = self._took.get(process.name, 0.0)
        newer = [
            other
            for other in there
            if self._took.get(other.name, mine) >= mine - SOON or other.name in self._follow or other.name in self._unsure
        ]
        # A target of 2.8 does not show whose request was the last: there a run may have fenced itself.
        if not newer and self.scenario.release != OLD:
            self.problems.append(f"{process.name} says that it was taken over, and there is no {'newer' if there else 'other'} run")

    def _needs_nobody(self, name: str, errors: Iterable[str]) -> None:
        """Faults pass: no run may end with an error that a person has to settle."""
        for error in errors:
            passing = {Superseded.__name__, *([SourceTruncated.__name__] if self.faults.unclean.gone else [])}
            if error == TransactionHangs.__name__ and (self._clock_was_ahead(name) or self._leaders_were_hidden(name)):
                continue
            if error_named(error).retry is not RetryRule.RETRY and error not in passing:
                self.problems.append(f"{name} ends with {error}")
            if error == FenceLost.__name__ and name not in self._unsure and self._holder[0] == name and not self._may_be_lost(name):
                self.problems.append(
                    f"{name} has lost its fence, although its requests for ids were answered and nobody else took the flow"
                )

    def _clock_was_ahead(self, name: str) -> bool:
        """By more than the threshold of a transaction that hangs: only Ferry's clock says how old one is. A report is of all tries."""
        tries = next(names for run in self._tries.values() if name in (names := {process.name for process in run}))
        return any(one.who in tries and 3_600_000 * one.hours > self.flow.open_transaction_warn_ms for one in self.faults.happened)

    def _leaders_were_hidden(self, name: str) -> bool:
        """A replaced leader shows transactions that have ended since. A report is of all tries."""
        tries = next(run for run in self._tries.values() if name in {process.name for process in run})
        return self.faults.leaders_hidden(self.target, min(process.began for process in tries))

    def _may_be_lost(self, name: str) -> bool:
        """Whether a transaction of this process may have timed out, an answer to a request for an id may be lost, or an older process that
        stood still may have fenced it."""
        stood = any(one.who == name and one.act in OF_PROCESSES for one in self.faults.happened)
        failed = any(
            one.act in OF_BROKERS or (one.act is Act.CRASH and not one.request.startswith("EndTxn")) for one in self.faults.happened
        )
        fences = not self.target.state.bumps or self.target.state.fences_twice
        disturbed = fences and self._proofs.may_have_fenced(name, self._took[name])
        return stood or failed or disturbed or bool(self.scenario.mishaps)

    def _wait(self, process: Process, seconds: float) -> None:
        """Until the process has ended, was killed or stands still, or for so long."""
        until = self.world.now + seconds
        while process.alive and not process.frozen and self.world.now < until:
            self.world.wait(until - self.world.now)
        if process.alive and not process.frozen and seconds >= LONGEST_RUN:
            self.problems.append(f"{process.name} has not ended after {seconds:.0f} s")

    def _come_to_rest(self) -> None:
        self.world.note("the faults are over")
        self.faults.heal()
        self.world.sleep(HEALED)
        # What one of two flows has left open keeps the other from records behind it.
        for name in ("last", "again") if len(self.ways) > 1 else ("last",):
            for way in self.ways:
                way._copy_rest(name)
        while any(process.alive for process in self.world.processes if process is not self._airflow):
            process = next(process for process in self.world.processes if process.alive and process is not self._airflow)
            self._end_of(process)
        self.world.sleep(STRAY_SECONDS)
        self._ask_oracles()
        alone = all(entry.beside is None for entry in self.scenario.rounds)
        usual = all(fault.act in USUAL for fault in self.faults.happened)
        if alone and usual and not self.scenario.mishaps:
            self.problems += [f"without a fault Ferry warns: {text}" for text in self.world.warnings]
            self.problems += [f"without a fault Ferry loses a lane: {text}" for way in self.ways for text in way._tried_again]
        if self.scenario.goes_on and not self.problems:
            for way in self.ways:
                way.writer.write([Write(partition, 1) for partition in range(self.scenario.partitions)])
            for way in self.ways:
                way._copy_rest("after")
            self.world.sleep(1.0)
            self._ask_oracles()
        if self.scenario.seed % READ_EVERY == 0 and not (self.problems or self.scenario.both or self.faults.unclean.gone):
            self._read()

    def _read(self) -> None:
        """What reads the copies says what the oracles say, and a verify sees that a record is another one."""
        let_read(self.copy, self.scenario.seed)
        self._compare("verify", partial(verified, self.flow), unequal)
        self._compare("groups", partial(grouped, self.flow), misplaced)
        what = spoil(self.copy, Random(self.scenario.seed))
        if what:
            self.world.note(f"somebody changes {what}")
            self._compare("second-verify", partial(verified, self.flow), partial(unseen, what))

    def _compare(self, name: str, work: Callable[[], Any], check: Callable[[Copy, Any], list[str]]) -> None:
        process = self.world.begin(name, work)
        self._wait(process, LONGEST_RUN)
        told = check(self.copy, process.result) if process.problem is None else [f"{name} ends: {process.problem}"]
        self.problems += told

    def _ask_oracles(self) -> None:
        for way in self.ways:
            self.problems += violations(way.copy)

    def _end_of(self, process: Process) -> None:
        until = self.world.now + LONGEST_RUN
        while process.alive and self.world.now < until:
            self.world.wait(1.0)
        if process.alive:
            self.problems.append(f"{process.name} has not ended {LONGEST_RUN:.0f} s after the faults")
            process.kill()

    def _settle(self, process: Process) -> None:
        """A person reads what the run says."""
        if process.problem is None and process.ended and SourceTruncated.__name__ in {one.error for one in process.result.failed}:
            self.world.note("a person sets ferry.on.recreate = restart")
            self.flow = replace(self.flow, on_recreate="restart")

    def _copy_rest(self, name: str) -> None:
        """Run until a run copies everything."""
        for number in range(LAST_RUNS):
            named = f"{name}{'-back' * (self.copy.mark == BACK)}-{number}"
            process = self._start(named, RunRequest(self.flow.name, named))
            self._wait(process, LONGEST_RUN)
            if process.problem is None and process.ended and process.result.exit_code is ExitCode.DONE:
                return
            self._settle(process)
            self.world.sleep(10.0)
        self.problems.append(f"{LAST_RUNS} runs after the faults do not copy everything")


class _WayBack(Play):
    """The flow in the other direction, in the same world: from the target to the source."""

    def __init__(self, ahead: Play, flow: Flow) -> None:
        self.scenario, self.problems, self.world, self.faults = ahead.scenario, ahead.problems, ahead.world, ahead.faults
        self.source, self.target = ahead.target, ahead.source
        own = self.source.create_topic(TOPIC, ahead.scenario.partitions, min(3, ahead.scenario.target_brokers))
        own.set_config(ahead.source.topic(TOPIC).config)
        self._watch(flow, BACK)


def play(scenario: Scenario) -> Outcome:
    """Play it in a world of its own."""
    return Play(scenario).play()
