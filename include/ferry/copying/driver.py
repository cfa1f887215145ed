"""The driver of one copy: fences older runs, plans, hands lanes to a runner, and runs lost lanes again.

It runs in the Spark driver or, for small jobs, in the caller's process. It reads everything that decides about data after fencing.
This driver copies to the ends that its plan finds; following_driver.py goes on with what arrives.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ferry import clock
from ferry.clusters.groups.coordination import COORDINATION_SECONDS, ProducerIdentity
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import ClientRole
from ferry.copying.attempt_records import TryRecords
from ferry.copying.committed import Committed
from ferry.copying.fenced_plans import Decide, FencedPlans
from ferry.copying.fencing import RunLease
from ferry.copying.lane_assignment import LaneAssignment, partition_task
from ferry.copying.lane_attempts import LANE_ATTEMPTS, LanesOut
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask, PartitionTask
from ferry.copying.lane_runner import LaneRunner
from ferry.copying.last_stable_lag import hanging
from ferry.copying.partition_plan import PartitionPlan
from ferry.copying.partition_weights import read_bytes_an_offset
from ferry.copying.progress import ProgressObserver, beside, named_when_slow
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot
from ferry.copying.upkeep import ask_held_ever, keep_up
from ferry.errors import ClusterUnreachable, FerryError, PartitionUnavailable, RetryRule, SchemaIdUnknown, Superseded, count_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.runs_topic import RunOpened
from ferry.ledger.state import Claim, encode_state

# Ferry waits this long before it takes lost lanes back, and twice as long each time that they are lost again without a commit.
FIRST_PAUSE_SECONDS = 1.0
# How long Ferry waits for a cluster that it has already waited for.
LOOK_SECONDS = 10.0

Log = Callable[[str], None]


class CopyDriver:
    """One try of one run. `records`: what it writes about itself."""

    def __init__(
        self,
        opened: OpenFlow,
        request: RunRequest,
        runner: LaneRunner,
        say: Log,
        lagging: Callable[[], Collection[TopicPartition] | None] = lambda: None,
        *,
        cpu_told: float = 0.0,
    ) -> None:
        """`lagging`: in which partitions a transaction may be overdue after the copy (None: in all). `cpu_told`: as of TryRecords."""
        self._opened, self._flow, self._request = opened, opened.flow, request
        self._runner, self._say, self._lagging = runner, say, lagging
        self._plans, self.records = FencedPlans(opened, request), TryRecords(opened, request, cpu_told)
        self._ends: Mapping[TopicPartition, int] = {}  # of the first plan: lost lanes copy to them too
        self._stopped_lanes: set[int] = set()
        self._unreachable = ""  # the problem of a lane that waited for a whole cluster in vain
        self._cpu_seconds = 0.0
        self._assignment = LaneAssignment(opened.flow)
        self._said = ""  # the last problem that passes
        self._silent_since = 0.0  # since when a cluster does not answer the plan of lost lanes; 0: none

    def run(self) -> None:
        """Copy, and write the outcome to the runs topic. Errors that end the run, like Superseded and ClusterUnreachable, are raised."""
        self.under_the_fence(self._copy)

    @property
    def lacks_schemas(self) -> bool:
        """Whether partitions stopped because a record has an id of a schema that the last sync did not know."""
        return any(failure.error == SchemaIdUnknown.__name__ for failure in self._plans.failures.values())

    def seed(self, decide: Decide) -> None:
        """Instead of copying, write the seeds that `decide` plans from a snapshot after fencing. Outcome and errors as in `run`."""
        self.under_the_fence(lambda lease: self._seed(lease, decide))

    def under_the_fence(self, act: Callable[[RunLease], None]) -> None:
        """Take the flow like another run, and call `act`, which takes the lanes. A run that follows may come back. Errors as in `run`."""
        lease = RunLease(self._opened)
        with named_when_slow(self._say, "reading what earlier runs left on the target"):
            lease.look_up()
            newer = self.records.begin()
        if newer is not None:  # to take the flow back would end a run that follows for longer
            self._give_way(newer)
            return
        try:
            self._warm_up()
            with lease:
                act(lease)
        except Superseded as problem:
            self._superseded(problem)
        except FerryError as problem:
            self._plans.fail("", -1, type(problem).__name__, str(problem))
            with suppress(ClusterUnreachable):  # the target may be unreachable too; `problem` is what ended the run
                self._end(seconds=LOOK_SECONDS if isinstance(problem, ClusterUnreachable) else None)
            raise
        else:
            self._end()

    def _warm_up(self) -> None:
        """Called before this run takes the flow."""

    def _superseded(self, problem: Superseded) -> None:
        """Another run or command has taken the flow over."""
        with suppress(ClusterUnreachable):
            self._end(superseded=str(problem))
        raise problem

    def _take_over(self, lease: RunLease) -> dict[int, ProducerIdentity]:
        held = lease.take_lanes()
        lease.write_record(exactly_once=self._flow.exactly_once)
        if self._request.since is not None:  # what receipts do not cover is copied
            lease.mark_ledger()
        return held | lease.take_more_lanes(lease.last_record().lanes)

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
        self._ends = {plan.facts.key: plan.facts.end for plan in plans}
        pending = self._lane_tasks(plans, held)
        job = self._job(seen, held)
        left = {plan.facts.key: plan.offsets for plan in plans}
        self._say(f"{count_of(len(pending), 'lane')}, {count_of(sum(left.values()), 'offset')} to go")
        out = LanesOut()
        with self._beside(Committed(left)):
            self._run_all_lanes(job, pending, out, partial(self._taken_back, lease, held, out))
        self._retake_stopped(lease, held, out)
        self._tidy(lease, job, seen)

    def _beside(self, committed: Committed) -> AbstractContextManager[None]:
        """A scope for the work that goes on while lanes run."""
        observer = ProgressObserver(self._flow, self._request, self.records.ends_of_try, committed, self._say)
        return beside("ferry-progress", observer.watch)

    def _run_all_lanes(self, job: CopyJob, pending: list[LaneTask], out: LanesOut, more: Callable[[], list[LaneTask]]) -> None:
        """Run the `pending` lanes, and those that `more` gives, until none is left."""
        while pending:
            self._run_lanes(job, pending, out, more)
            pending = more()

    def _tidy(self, lease: RunLease, job: CopyJob, seen: FlowSnapshot) -> None:
        """After the lanes: look for transactions of producers that hang, and do the upkeep for later runs."""
        held_ever = ask_held_ever(self._opened)
        for failure in hanging(self._opened, seen, self._lagging()):  # no transaction of this flow is open any more
            self._plans.failures.setdefault((failure.topic, failure.partition), failure)
        keep_up(self._opened, lease, job.ledger_topic_id, held_ever.answer(), self._say)

    def _taken_back(self, lease: RunLease, held: dict[int, ProducerIdentity], out: LanesOut) -> list[LaneTask]:
        """Take lost lanes back and plan them again, while others may still run. Lanes that were lost too often are given up."""
        lost = dict(out.lost)
        if not lost:
            return []
        self._end_if_unreachable(lease)
        clock.sleep(FIRST_PAUSE_SECONDS * 2**out.failures)
        again = lease.retake(lost)

        def concerns(topic: str, partition: int) -> bool:
            return self._assignment.has(lost, TopicPartition(topic, partition))

        while (found := self._planned_again(lease, ends=self._ends, concerns=concerns)) is None:
            clock.sleep(FIRST_PAUSE_SECONDS)
        _, plans = found
        self._plans.name_missing(out.lost_partitions, plans)
        return self._give_again(plans, {**held, **again}, out)

    def _planned_again(self, lease: RunLease, **look: Any) -> tuple[FlowSnapshot, list[PartitionPlan]] | None:
        """The plans of lost lanes (`look`: as of take_snapshot); None: a cluster is silent, for COORDINATION_SECONDS ClusterUnreachable."""
        try:
            found = self._plans.plan(lease, self._plans.decide, for_a_run=True, **look)
        except ClusterUnreachable as problem:
            now = clock.monotonic()
            self._silent_since = self._silent_since or now
            if problem.retry is not RetryRule.RETRY or now - self._silent_since > COORDINATION_SECONDS:
                raise
            self._say_once(f"the plan of lost lanes waits for a cluster that does not answer: {problem}")
            return None
        self._silent_since = 0.0
        return found

    def _give_again(
        self, plans: Iterable[PartitionPlan], held: Mapping[int, ProducerIdentity], out: LanesOut, *, lanes: Sequence[int] = ()
    ) -> list[LaneTask]:
        """Hand out the lost lanes that are planned again, or give them up. `lanes`: as of _lane_tasks."""
        why = "; ".join(sorted(set(out.lost.values())))
        tasks, given_up = out.give_again(self._lane_tasks(plans, held, lanes=lanes))
        self._give_up(given_up, f"{LANE_ATTEMPTS} attempts in a row that committed nothing")
        others = count_of(len(out.tasks) - len(tasks), "other")
        self._say(f"trying {count_of(len(tasks), 'lane')} again, beside {others}: {why}")
        return tasks

    def _retake_stopped(self, lease: RunLease, held: dict[int, ProducerIdentity], out: LanesOut) -> None:
        """Abort the open transactions of lanes that have failed. Otherwise readers of the target would wait for their time-out."""
        stopped, self._stopped_lanes = self._stopped_lanes - out.tasks.keys(), set()
        if stopped:
            held |= lease.retake(stopped)

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._say(text)
        self._said = text

    def _end_if_unreachable(self, lease: RunLease) -> None:
        """After a lane has waited for a cluster in vain: ClusterUnreachable if this process does not reach both soon either. Superseded."""
        if not self._unreachable:
            return
        try:
            for cluster in (self._opened.source, self._opened.target):
                cluster.require_contact()
            with self._opened.source.connected(ClientRole.CONSUMER) as source:  # lanes of this process get it
                source.connection.begin_anew()
            lease.confirm(LOOK_SECONDS)  # begins the lease's connection to the target anew; those lanes share it, unless it has failed
        except ClusterUnreachable as problem:
            if problem.retry is not RetryRule.RETRY:
                raise
            raise ClusterUnreachable(f"{self._unreachable}; asked once more: {problem}") from problem
        self._unreachable = ""

    def _lane_tasks(
        self, plans: Iterable[PartitionPlan], held: Mapping[int, ProducerIdentity], *, lanes: Sequence[int] = ()
    ) -> list[LaneTask]:
        """`lanes`: of the partitions that have none (none given: spread them over all)."""
        at_work = [plan for plan in plans if self._has_lane(plan) and plan.facts.remote_topic_id is not None]
        each = read_bytes_an_offset(self._opened.source, at_work)
        tasks = self._assignment.tasks([self._task(plan, each[plan.facts.key]) for plan in at_work], held, lanes)
        return [replace(task, ids=self._plans.schema_ids) for task in tasks]

    def _task(self, plan: PartitionPlan, offset_bytes: float) -> PartitionTask:
        return partition_task(plan, offset_bytes, flushed=not self._flow.exactly_once)

    def _has_lane(self, plan: PartitionPlan) -> bool:
        """Whether a lane gets the partition."""
        return plan.has_work

    def _job(self, seen: FlowSnapshot, held: Mapping[int, ProducerIdentity]) -> CopyJob:
        flow, ledger = self._flow, seen.target_topics.get(self._flow.ledger_topic)
        if ledger is None:  # it was there before: a broker that has just started, or lost the others, may not know it
            raise ClusterUnreachable(f"cluster {flow.target.alias}: the broker that was asked does not know {flow.ledger_topic}")
        producers = frozenset(identity.producer_id for identity in held.values())
        run_id, rate = self._request.run_id, flow.max_bytes_per_second
        return CopyJob(flow, run_id, ledger.topic_id or "", ledger.partitions, rate, producers, reroute=seen.reroute)

    def _run_lanes(self, job: CopyJob, tasks: list[LaneTask], out: LanesOut, more: Callable[[], list[LaneTask]] = list) -> None:
        """Run `tasks`, and lanes that `more` gives meanwhile. `out` knows which were lost."""
        out.give(tasks)
        self._assignment.used |= {task.lane for task in tasks}
        with closing(self._runner.run(self._opened, job, tasks, more)) as results:  # if an error is raised here, the workers end first
            for result in results:
                self._cpu_seconds += result.cpu_seconds
                out.take(result.lane, self._take_result(result, out.tasks[result.lane]))
        out.lose_the_rest()

    def _take_result(self, result: LaneResult, task: LaneTask) -> str | None:
        """Note what the lane has stopped. Returns why the lane is lost; None: it is done."""
        for key in self._went_on(result, task):
            self._plans.forget(key)
            self._assignment.forget(key)
        for outcome in result.partitions:
            if outcome.failure is not None:
                self._stop(TopicPartition(outcome.topic, outcome.partition), outcome.failure.error, outcome.failure.problem)
        if result.fenced:
            return "it was fenced"
        if result.failure is None:
            return None
        if result.failure.passing:
            self._unreachable = result.failure.problem if result.failure.unreachable else self._unreachable
            return result.failure.problem
        self._plans.fail("", -1, result.failure.error, result.failure.problem)
        self._stopped_lanes.add(result.lane)
        return None

    def _went_on(self, result: LaneResult, task: LaneTask) -> Iterable[TopicPartition]:  # noqa: ARG002 - a run that follows needs the task
        """Partitions of which no earlier failure counts any more."""
        return [TopicPartition(outcome.topic, outcome.partition) for outcome in result.partitions]

    def _stop(self, key: TopicPartition, error: str, problem: str) -> None:
        self._plans.stop(key, error, problem)
        self._assignment.fail(key, clock.monotonic())

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
