"""The driver of one copy: fences older runs, plans, hands lanes to a runner, and runs lost lanes again.

It runs in the Spark driver or, for small jobs, in the caller's process. It reads everything that decides about data after fencing.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ferry.clusters.admin.cluster_admin import require_contact
from ferry.clusters.groups.coordination import COORDINATION_SECONDS, ProducerIdentity
from ferry.clusters.net.client_cache import kept_clients
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import connected
from ferry.config import ClientRole, Flow
from ferry.copying.attempt_records import TryRecords
from ferry.copying.committed import Committed
from ferry.copying.fenced_plans import Decide, FencedPlans
from ferry.copying.fencing import RunLease
from ferry.copying.lane_assignment import LaneAssignment, partition_task
from ferry.copying.lane_attempts import LANE_ATTEMPTS, LanesOut
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask
from ferry.copying.lane_runner import LaneRunner
from ferry.copying.lanes import number_of_lanes
from ferry.copying.last_stable_lag import hanging
from ferry.copying.partition_plan import PartitionPlan
from ferry.copying.partition_weights import read_bytes_an_offset
from ferry.copying.progress import ProgressObserver, beside, named_when_slow
from ferry.copying.request import RunRequest
from ferry.copying.run_liveness import FOLLOW_LOOK_SECONDS
from ferry.copying.snapshot import FlowSnapshot
from ferry.copying.upkeep import UpkeepBeside, ask_held_ever, keep_up
from ferry.errors import ClusterUnreachable, FerryError, NoExecutors, PartitionUnavailable, RetryRule, Superseded, count_of
from ferry.ledger.runs_topic import RunOpened
from ferry.ledger.state import Claim, encode_state
from ferry.syncs.context import SyncContext
from ferry.syncs.topics import sync_topics

# Ferry waits so long before it takes lost lanes back, and twice as long each time that they are lost again without a commit.
FIRST_PAUSE_SECONDS = 1.0
# For a cluster that Ferry has already waited for.
LOOK_SECONDS = 10.0

Log = Callable[[str], None]


class CopyDriver:
    """One try of one run. `records`: what it writes about itself."""

    def __init__(  # noqa: PLR0917 - the run, who copies, then what is called
        self,
        flow: Flow,
        request: RunRequest,
        runner: LaneRunner,
        say: Log,
        meanwhile: Callable[[threading.Event], None] = lambda _: None,
        lagging: Callable[[], Collection[TopicPartition] | None] = lambda: None,
        *,
        cpu_told: float = 0.0,
    ) -> None:
        """`meanwhile`: called in a thread when this run holds the flow, with an event that says that the copy is over.

        `cpu_told`: as of TryRecords. `lagging`: called after the copy; in which partitions a transaction may be overdue (None: in all).
        """
        self._flow, self._request, self._runner, self._say = flow, request, runner, say
        self._meanwhile, self._lagging = meanwhile, lagging
        self._plans, self.records = FencedPlans(flow, request), TryRecords(flow, request, cpu_told)
        self._stopped_lanes: set[int] = set()
        self._unreachable = ""  # the problem of a lane that waited for a whole cluster in vain
        self._cpu_seconds = 0.0
        self._follows = request.follow_until is not None
        self._assignment = LaneAssignment(flow, lambda: runner.width, follows=self._follows)
        self._looked = self._refreshed = time.monotonic()
        self._said = ""  # the last problem of looking around
        # Of a run that follows: when lost lanes may be planned again, and since when a cluster does not answer that; 0: at once, and none.
        self._again_at = self._silent_since = 0.0
        self._interrupt_at = 0.0  # when lanes that are to end are ended, if they have not by themselves
        self._upkeep: UpkeepBeside | None = None  # of a run that follows

    def run(self) -> None:
        """Copy, and write the outcome to the runs topic. Errors that end the run, like Superseded and ClusterUnreachable, are raised."""
        self.under_the_fence(self._copy)

    def seed(self, decide: Decide) -> None:
        """Instead of copying, write the seeds that `decide` plans from a snapshot after fencing. Outcome and errors as in `run`."""
        self.under_the_fence(lambda lease: self._seed(lease, decide))

    @kept_clients()
    def under_the_fence(self, act: Callable[[RunLease], None]) -> None:
        """As another run does: `act`, which takes the lanes, with the flow. A run that follows may come back. Errors as in `run`."""
        lease = RunLease(self._flow)
        with named_when_slow(self._say, "reading what earlier runs left on the target"):
            lease.look_up()
            newer = self.records.begin()
        if newer is not None:  # to take the flow back would end a run that follows for longer
            self._give_way(newer)
            return
        try:
            if self._follows:
                with suppress(NoExecutors):  # the run that copies now has all cores, and leaves them when it loses its lanes
                    self._runner.warm_up(number_of_lanes(0, self._flow.lanes))  # that run goes on meanwhile
            with lease:
                act(lease)
        except FerryError as problem:
            superseded = str(problem) if isinstance(problem, Superseded) else None
            if superseded is not None and self._follows:
                self._give_way(self.records.taker())
                return
            if superseded is None:
                self._plans.fail("", -1, type(problem).__name__, str(problem))
            with suppress(ClusterUnreachable):  # the target may be unreachable too; `problem` is what ended the run
                waited = isinstance(problem, ClusterUnreachable)
                self._end(superseded=superseded, seconds=LOOK_SECONDS if waited else None)
            raise
        self._end()

    def _take_over(self, lease: RunLease) -> dict[int, ProducerIdentity]:
        held = lease.take_lanes()
        lease.write_record(exactly_once=self._flow.exactly_once)
        return held

    def _prepare(self, lease: RunLease, seen: FlowSnapshot, plans: Iterable[PartitionPlan]) -> dict[int, ProducerIdentity]:
        """Take as many lanes as are needed, by what there is to copy, and claim the remote topics to which no flow has written yet.

        Returns the lanes that no earlier run had.
        """
        at_work = [plan for plan in plans if self._has_lane(plan)]
        if not self._assignment.lanes:
            self._assignment.decide(len(at_work))
        new = lease.take_more_lanes(self._assignment.lanes)
        facts = [plan.facts for plan in at_work if seen.claims.get(plan.facts.remote_topic) is None]
        places = {entry.remote_topic: str(entry.remote_topic_id) for entry in facts if entry.remote_topic_id is not None}
        claims = [encode_state(Claim(topic, topic_id, self._flow.name)) for topic, topic_id in places.items()]
        if claims:
            lease.write({TopicPartition(self._flow.state_topic, 0): claims})
        return new

    def _seed(self, lease: RunLease, decide: Decide) -> None:
        held = self._take_over(lease)
        seen, plans = self._plans.plan(lease, decide)
        held |= self._prepare(lease, seen, plans)
        tasks = [
            replace(task, partitions=tuple(replace(part, replaces_offset=True) for part in task.partitions))
            for task in self._lane_tasks(plans, held)
        ]
        out = LanesOut()
        self._run_lanes(self._job(seen, held), tasks, out)
        self._end_if_unreachable(lease)
        self._give_up([(out.tasks[lane], why) for lane, why in out.lost.items()], "1 attempt")

    def _copy(self, lease: RunLease) -> None:
        with named_when_slow(self._say, "taking the flow over from earlier runs"):
            held = self._take_over(lease)
        with named_when_slow(self._say, "planning the lanes"):
            seen, plans = self._plans.plan(lease, self._plans.decide, for_a_run=True)
            held |= self._prepare(lease, seen, plans)
        ends = {plan.facts.key: plan.facts.end for plan in plans}
        pending = self._lane_tasks(plans, held)
        job = self._job(seen, held)
        left = {plan.facts.key: plan.offsets for plan in plans}
        self._say(f"{count_of(len(pending), 'lane')}, {count_of(sum(left.values()), 'offset')} to go")
        if self._follows:
            self._upkeep = UpkeepBeside(self._flow, job.ledger_topic_id, self._say)
        committed = Committed(None if self._follows else left, self._follows)
        observer = ProgressObserver(self._flow, self._request, self.records.ends_of_try, committed, self._say)
        with beside("ferry-progress", observer.watch), beside("ferry-meanwhile", self._meanwhile):
            out = LanesOut()
            more = partial(self._taken_back, lease, held, ends, out)
            while pending or out.lost or self._time_is_left:
                if pending:
                    self._run_lanes(job, pending, out, more)
                pending = more()
                if not pending and (out.lost or self._time_is_left):  # what failed is tried again later
                    time.sleep(FIRST_PAUSE_SECONDS)
        self._retake_stopped(lease, held, out)
        if self._upkeep is not None:
            self._upkeep.end(lease)
        held_ever = ask_held_ever(self._flow)
        for failure in hanging(self._flow, seen, self._lagging()):  # no transaction of this flow is open any more
            self._plans.failures.setdefault((failure.topic, failure.partition), failure)
        keep_up(self._flow, lease, job.ledger_topic_id, held_ever.answer(), self._say)

    def _taken_back(
        self, lease: RunLease, held: dict[int, ProducerIdentity], ends: Mapping[TopicPartition, int], out: LanesOut
    ) -> list[LaneTask]:
        """Take lost lanes back and plan them again, while others may still run. Lanes that were lost too often are given up."""
        lost = dict(out.lost)
        if lost:
            self._end_if_unreachable(lease)
        if not lost or self._must_wait(out):
            return self._look_around(lease, held, out)
        again = lease.retake(lost)
        takes_more = min(out.interrupted & lost.keys(), default=None)
        waiting = set() if takes_more is None else set(self._assignment.left)

        def concerns(topic: str, partition: int) -> bool:
            key = TopicPartition(topic, partition)
            return key in waiting or self._assignment.has(lost, key)

        found = self._planned_again(lease, {"for_a_run": True, "ends": {} if self._follows else ends, "concerns": concerns})
        if found is None:
            return []
        seen, plans = found
        self._again_at = 0.0
        before = [out.tasks[lane] for lane in lost]
        self._plans.name_missing((part.key for task in before for part in task.partitions), plans)
        if waiting:
            held |= self._prepare(lease, seen, plans)
            self._assignment.left -= waiting
        tasks, given_up = out.give_again(self._lane_tasks(plans, {**held, **again}, lane=takes_more))
        self._give_up(given_up, f"{LANE_ATTEMPTS} attempts in a row that committed nothing")
        others = count_of(len(out.tasks) - len(tasks), "other")
        self._say(f"trying {count_of(len(tasks), 'lane')} again, beside {others}: {'; '.join(sorted(set(lost.values())))}")
        if self._follows:
            again_in_lanes = {part.key for task in tasks for part in task.partitions}
            self._assignment.drop(part.key for task in before for part in task.partitions if part.key not in again_in_lanes)
        return tasks

    def _must_wait(self, out: LanesOut) -> bool:
        """Whether it is too early to take lost lanes back. A run that follows does not sleep: its other lanes may run in this thread."""
        pause = FIRST_PAUSE_SECONDS * 2**out.failures
        if not self._follows:
            time.sleep(pause)
            return False
        now = time.monotonic()
        self._again_at = self._again_at or (now + pause if out.failures else now)
        return now < self._again_at

    def _planned_again(self, lease: RunLease, look: Mapping[str, Any]) -> tuple[FlowSnapshot, list[PartitionPlan]] | None:
        """The plans of lost lanes; None: a run that follows asks again soon. ClusterUnreachable after COORDINATION_SECONDS of silence."""
        while True:
            try:
                found = self._plans.plan(lease, self._plans.decide, **look)
            except ClusterUnreachable as problem:
                now = time.monotonic()
                self._silent_since = self._silent_since or now
                if problem.retry is not RetryRule.RETRY or now - self._silent_since > COORDINATION_SECONDS:
                    raise
                self._say_once(f"the plan of lost lanes waits for a cluster that does not answer: {problem}")
            else:
                self._silent_since = 0.0
                return found
            if self._follows:
                self._again_at = now + FIRST_PAUSE_SECONDS
                return None
            time.sleep(FIRST_PAUSE_SECONDS)

    def _look_around(self, lease: RunLease, held: dict[int, ProducerIdentity], out: LanesOut) -> list[LaneTask]:
        """Following: Superseded if another run has taken the flow over.

        Returns a lane of partitions that have none: of lanes that ended because a partition failed, and, at the interval of
        `refresh.topics`, new ones and those that failed.
        """
        now = time.monotonic()
        if not self._time_is_left:
            return []
        if now - self._looked >= FOLLOW_LOOK_SECONDS:
            self._looked = now
            lease.confirm()
        self._retake_stopped(lease, held, out)
        if out.interrupted:
            for lane in out.interrupted if now >= self._interrupt_at else ():
                self._runner.interrupt(lane)  # the first time, its Spark job may not have begun
            return []
        if self._upkeep is not None:
            self._upkeep.look(lease)
        mirroring = self._flow.mirroring
        refresh = mirroring.refresh_topics_enabled and 0 <= mirroring.refresh_topics_interval <= now - self._refreshed
        if refresh:
            self._refreshed = now
        try:
            return self._new_lane(lease, held, out, refresh=refresh) if refresh or self._assignment.left else []
        except Superseded:
            raise
        except FerryError as problem:
            self._refreshed -= max(0.0, mirroring.refresh_topics_interval - LOOK_SECONDS) if refresh else 0.0
            self._say_once(f"could not plan what has no lane; Ferry tries again: {problem}")
            return []

    def _retake_stopped(self, lease: RunLease, held: dict[int, ProducerIdentity], out: LanesOut) -> None:
        """Abort the open transactions of lanes that have failed: else readers of the target would wait for the transactions' time-out."""
        stopped, self._stopped_lanes = self._stopped_lanes - out.tasks.keys(), set()
        if stopped:
            held |= lease.retake(stopped)

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._say(text)
        self._said = text

    def _new_lane(self, lease: RunLease, held: dict[int, ProducerIdentity], out: LanesOut, *, refresh: bool) -> list[LaneTask]:
        if refresh and not self._request.topics:
            sync_topics(SyncContext(self._flow, dry_run=False))
        left = set(self._assignment.left)

        def has_none(topic: str, partition: int) -> bool:
            key = TopicPartition(topic, partition)
            return key in left or (refresh and self._assignment.is_new(key))

        seen, plans = self._plans.plan(lease, self._plans.decide, for_a_run=True, concerns=has_none)
        self._plans.name_missing(left, plans)
        new = [plan for plan in plans if has_none(*plan.facts.key)]
        if not any(self._has_lane(plan) for plan in new):
            self._assignment.left -= left
            return []
        if out.tasks and not self._runner.has_room(len(out.tasks)):
            now = time.monotonic()
            self._assignment.left = left | {
                plan.facts.key for plan in new if self._has_lane(plan) and self._assignment.may_join(plan.facts.key, now)
            }
            if self._assignment.left:
                self._interrupt(self._assignment.smallest(out.tasks), lease, out)
            return []
        lane = self._assignment.free_lane(held, out.tasks)
        if lane in self._assignment.used:
            held |= lease.retake([lane])
        held |= self._prepare(lease, seen, new)
        tasks = self._lane_tasks(new, held, lane=lane)
        self._say(f"lane {lane} goes on with {count_of(sum(len(task.partitions) for task in tasks), 'partition')}")
        out.give(tasks)
        self._assignment.used.add(lane)
        self._assignment.left -= left
        return tasks

    def _interrupt(self, lane: int, lease: RunLease, out: LanesOut) -> None:
        """Let a lane end, so that it gets more partitions. For its assignment listener, it first may end by itself: it is fenced."""
        out.interrupted.add(lane)
        if self._flow.handling.assignment_listener:
            lease.retake([lane])
            self._interrupt_at = time.monotonic() + 2 * LOOK_SECONDS

    @property
    def _time_is_left(self) -> bool:
        """Whether the run follows, and its time is not over."""
        return self._request.follow_until is not None and time.time() < self._request.follow_until.timestamp()

    def _end_if_unreachable(self, lease: RunLease) -> None:
        """ClusterUnreachable if a lane has waited for a cluster in vain, and this process does not reach both clusters soon."""
        if not self._unreachable:
            return
        try:
            require_contact(self._flow.source, self._flow.target)
            with connected(self._flow.source, ClientRole.CONSUMER) as source:  # lanes of this process use it
                source.connection.begin_anew()
            lease.confirm(LOOK_SECONDS)  # the same for the connection to the target
        except ClusterUnreachable as problem:
            if problem.retry is not RetryRule.RETRY:
                raise
            raise ClusterUnreachable(f"{self._unreachable}; asked once more: {problem}") from problem
        self._unreachable = ""

    def _lane_tasks(
        self, plans: Iterable[PartitionPlan], held: Mapping[int, ProducerIdentity], *, lane: int | None = None
    ) -> list[LaneTask]:
        """`lane`: of the partitions that have none (None: spread them over all lanes)."""
        at_work = [plan for plan in plans if self._has_lane(plan) and plan.facts.remote_topic_id is not None]
        each = read_bytes_an_offset(self._flow.source, at_work)
        flushed = not self._flow.exactly_once
        parts = [partition_task(plan, each[plan.facts.key], follows=self._follows, flushed=flushed) for plan in at_work]
        return self._assignment.tasks(parts, held, lane)

    def _has_lane(self, plan: PartitionPlan) -> bool:
        """A run that follows watches the partitions, too, in which nothing is to be copied now."""
        return plan.has_work or (self._follows and plan.failure is None)

    def _job(self, seen: FlowSnapshot, held: Mapping[int, ProducerIdentity]) -> CopyJob:
        flow, ledger = self._flow, seen.target_topics[self._flow.ledger_topic]
        producers = frozenset(identity.producer_id for identity in held.values())
        until = None if self._request.follow_until is None else self._request.follow_until.timestamp()
        run_id, rate = self._request.run_id, flow.max_bytes_per_second
        return CopyJob(flow, run_id, ledger.topic_id or "", ledger.partitions, rate, producers, until, seen.reroute)

    def _run_lanes(self, job: CopyJob, tasks: list[LaneTask], out: LanesOut, more: Callable[[], list[LaneTask]] = list) -> None:
        """Run `tasks`, and lanes that `more` gives meanwhile. `out` knows which were lost."""
        out.give(tasks)
        self._assignment.used |= {task.lane for task in tasks}
        with closing(self._runner.run(job, tasks, more)) as results:  # if an error is raised here, the workers end first
            for result in results:
                self._cpu_seconds += result.cpu_seconds
                lost = self._take_result(result, out.tasks[result.lane])
                if self._follows and lost is None and result.failure is not None:
                    self._assignment.drop_lane(result.lane)
                out.take(result.lane, lost)
        out.lose_the_rest()

    def _take_result(self, result: LaneResult, task: LaneTask) -> str | None:
        began = {part.key: part.position for part in task.partitions}
        for outcome in result.partitions:
            key = TopicPartition(outcome.topic, outcome.partition)
            if not self._follows or outcome.position > began.get(key, outcome.position):
                self._plans.forget(key)
                self._assignment.forget(key)
            if outcome.failure is not None:
                self._stop(key, outcome.failure.error, outcome.failure.problem)
                if self._follows:
                    self._say(f"{outcome.topic}-{outcome.partition} stops: {outcome.failure.error}: {outcome.failure.problem}")
        if self._follows and result.failure is None:
            self._assignment.end(result)
        if result.fenced:
            return "it was fenced"
        if result.failure is None:
            return None
        if result.failure.passing:
            self._unreachable = result.failure.problem if result.failure.unreachable else self._unreachable
            return result.failure.problem
        self._plans.fail("", -1, result.failure.error, result.failure.problem)
        self._stopped_lanes.add(result.lane)
        if self._follows:
            self._say(f"lane {result.lane} stops: {result.failure.error}: {result.failure.problem}")
        return None

    def _stop(self, key: TopicPartition, error: str, problem: str) -> None:
        self._plans.stop(key, error, problem)
        self._assignment.fail(key, time.monotonic())

    def _give_up(self, tasks: Iterable[tuple[LaneTask, str]], attempts: str) -> None:
        for task, why in tasks:
            self._assignment.drop(part.key for part in task.partitions)
            for partition in task.partitions:
                self._stop(partition.key, PartitionUnavailable.__name__, f"lane {task.lane} did not finish in {attempts}: {why}")

    def _end(self, **how: Any) -> None:
        """`how`: as of TryRecords.end."""
        self.records.end(self._plans.failures.values(), self._plans.skipped, self._cpu_seconds, **how)

    def _give_way(self, to: RunOpened | None) -> None:
        self._end(taken_over="" if to is None else to.run_id)
        self.records.give_way(to)
