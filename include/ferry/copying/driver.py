"""The driver of one copy: fences older runs, plans, hands lanes to a runner, and runs lost lanes again.

It runs in the Spark driver or, for small jobs, in the caller's process. It reads everything that decides about data after fencing.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ferry.clusters.admin import ClusterAdmin, require_contact
from ferry.clusters.coordination import ProducerIdentity
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.kept import kept_clients
from ferry.clusters.log_sizes import log_sizes
from ferry.clusters.partitions import TopicPartition, grouped
from ferry.clusters.shared_connection import Asked, ask_cluster, connected
from ferry.config import ClientRole, Flow
from ferry.copying.fencing import RunLease
from ferry.copying.lane_runner import LaneRunner
from ferry.copying.lanes import number_of_lanes, spread
from ferry.copying.lanes_out import LANE_ATTEMPTS, LanesOut, until_clusters_answer
from ferry.copying.last_stable_lag import last_stable_lags, overdue
from ferry.copying.ledger_compaction import compact_ledger, is_due
from ferry.copying.model import CopyJob, LaneResult, LaneTask, PartitionTask
from ferry.copying.plan import PartitionPlan, plan_partitions, stopped_without_topic
from ferry.copying.progress import Progress, ProgressObserver, beside, named_when_slow
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot, rules_of, take_snapshot
from ferry.copying.weights import bytes_an_offset, without_size
from ferry.errors import ClusterUnreachable, FerryError, RetryRule, Superseded
from ferry.ledger import loss_index
from ferry.ledger.losses import index_losses
from ferry.ledger.reading import ask_syncs_done
from ferry.ledger.run_report import PartitionFailure, Skipped, time_now
from ferry.ledger.runs_topic import RunOpened, RunResult, read_run_records, write_run_record
from ferry.ledger.state import Claim, encode_state
from ferry.ledger.topic_ids import NO_ID
from ferry.syncs.topics import plan_topics, why_missing

log = logging.getLogger(__name__)

# Ferry waits so long before it takes lost lanes back, and twice as long each time that they are lost again without a commit.
FIRST_PAUSE_SECONDS = 1.0

# For a cluster that Ferry has already waited for.
LOOK_SECONDS = 10.0

Log = Callable[[str], None]
Decide = Callable[[FlowSnapshot], Iterable[PartitionPlan]]


class CopyDriver:
    """One try of one run."""

    def __init__(self, flow: Flow, request: RunRequest, runner: LaneRunner, say: Log) -> None:
        self._flow, self._request, self._runner, self._say = flow, request, runner, say
        self._ledger = flow.ledger_topic
        self._failures: dict[tuple[str, int], PartitionFailure] = {}  # by source partition
        self._skipped: tuple[Skipped, ...] = ()
        self._stopped_lanes: set[int] = set()
        self._unreachable = ""  # the problem of a lane that waited for a whole cluster in vain
        self._cpu_seconds = 0.0
        self.ledger_ends: Mapping[int, int] = {}  # when the run was opened
        self._lanes = 0  # known with the plan
        self._lane_of: dict[TopicPartition, int] = {}
        self._started = time.monotonic()

    def run(self) -> None:
        """Copy, and write the outcome to the runs topic. Errors that end the run, like Superseded and ClusterUnreachable, are raised."""
        self._under_the_fence(self._copy)

    def seed(self, decide: Decide) -> None:
        """Instead of copying, write the seeds that `decide` plans from a snapshot after fencing. Outcome and errors as in `run`."""
        self._under_the_fence(lambda lease: self._seed(lease, decide))

    @kept_clients()
    def _under_the_fence(self, act: Callable[[RunLease], None]) -> None:
        lease = RunLease(self._flow)
        with named_when_slow(self._say, "reading what earlier runs left on the target"):
            lease.look_up()
            self._write_opened()
        try:
            with lease:
                act(lease)
        except FerryError as problem:
            superseded = str(problem) if isinstance(problem, Superseded) else None
            if superseded is None:
                self._fail("", -1, type(problem).__name__, str(problem))
            with suppress(ClusterUnreachable):  # the target may be unreachable too; `problem` is what ended the run
                waited = isinstance(problem, ClusterUnreachable)
                self._write_result(superseded, seconds=LOOK_SECONDS if waited else None)
            raise
        self._write_result()

    def _take_over(self, lease: RunLease) -> dict[int, ProducerIdentity]:
        held = lease.take_lanes()
        lease.write_record(exactly_once=self._flow.exactly_once)
        return held

    def _prepare(self, lease: RunLease, seen: FlowSnapshot, plans: Iterable[PartitionPlan]) -> dict[int, ProducerIdentity]:
        """Decide how many lanes the run has, by what there is to copy, and claim the remote topics to which no flow has written yet.

        Returns the lanes that no earlier run had.
        """
        at_work = [plan for plan in plans if plan.has_work]
        self._lanes = number_of_lanes(len(at_work), self._flow.lanes)
        more = lease.take_more_lanes(self._lanes)
        facts = [plan.facts for plan in at_work if seen.claims.get(plan.facts.remote_topic) is None]
        places = {entry.remote_topic: str(entry.remote_topic_id) for entry in facts if entry.remote_topic_id is not None}
        claims = [encode_state(Claim(topic, topic_id, self._flow.name)) for topic, topic_id in places.items()]
        if claims:
            lease.write({TopicPartition(self._flow.state_topic, 0): claims})
        return more

    def _seed(self, lease: RunLease, decide: Decide) -> None:
        held = self._take_over(lease)
        seen, plans = self._plan(lease, decide)
        held |= self._prepare(lease, seen, plans)
        tasks = [
            replace(task, partitions=tuple(replace(part, replaces_offset=True) for part in task.partitions))
            for task in self._lane_tasks(plans, held)
        ]
        out = LanesOut()
        self._run_lanes(self._job(seen, held), tasks, out, Progress(0, len(tasks)))
        self._end_if_unreachable(lease)
        self._give_up([(out.tasks[lane], why) for lane, why in out.lost.items()], "1 attempt")

    def _copy(self, lease: RunLease) -> None:
        with named_when_slow(self._say, "taking the flow over from earlier runs"):
            held = self._take_over(lease)
        with named_when_slow(self._say, "planning the lanes"):
            seen, plans = self._plan(lease, self._decide, for_a_run=True)
            self._skipped = seen.skipped
            held |= self._prepare(lease, seen, plans)
        ends = {plan.facts.key: plan.facts.end for plan in plans}
        pending = self._lane_tasks(plans, held)
        job = self._job(seen, held)
        progress = Progress(sum(plan.offsets for plan in plans), len(pending))
        self._say(f"{progress.lanes_total} lanes, {progress.offsets_total:,} offsets to go")
        observer = ProgressObserver(self._flow, self._request.run_id, self.ledger_ends, progress, self._say)
        with beside("ferry-progress", observer.watch):
            out = LanesOut()
            more = partial(self._taken_back, lease, held, ends, out)
            while pending:
                self._run_lanes(job, pending, out, progress, more)
                pending = more()
        if self._stopped_lanes:  # aborts their open transactions: else readers of the target would wait for the transactions' time-out
            lease.retake(self._stopped_lanes)
        held_ever = self._ask_held_ever()
        self._name_last_stable_lags(seen)
        self._index_losses(lease, job.ledger_topic_id, self._compact_ledger(lease, held_ever.answer()))

    def _taken_back(
        self, lease: RunLease, held: Mapping[int, ProducerIdentity], ends: Mapping[TopicPartition, int], out: LanesOut
    ) -> list[LaneTask]:
        """Take lost lanes back and plan them again, while others may still run. Lanes that were lost too often are given up."""
        lost = dict(out.lost)
        if not lost:
            return []
        self._end_if_unreachable(lease)
        time.sleep(FIRST_PAUSE_SECONDS * 2**out.failures)
        again = lease.retake(lost)
        look = {
            "for_a_run": True,
            "ends": ends,
            "concerns": lambda topic, partition: self._lane_of.get(TopicPartition(topic, partition)) in lost,
        }
        seen, plans = until_clusters_answer()(self._plan, lease, self._decide, **look)
        self._skipped = seen.skipped
        self._name_missing([out.tasks[lane] for lane in lost], plans)
        tasks, given_up = out.give_again(self._lane_tasks(plans, {**held, **again}))
        self._give_up(given_up, f"{LANE_ATTEMPTS} attempts in a row that committed nothing")
        self._say(f"trying {len(tasks)} lanes again: {'; '.join(sorted(set(lost.values())))}")
        return tasks

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

    def _name_last_stable_lags(self, seen: FlowSnapshot) -> None:
        """After the copy no transaction of this flow is open: if a last stable offset lags now, the transaction is somebody else's."""
        with ClusterAdmin(self._flow.source) as source, ClusterAdmin(self._flow.target) as target:
            for failure in overdue(last_stable_lags(self._flow, seen, source, target)):
                self._failures.setdefault((failure.topic, failure.partition), failure)

    def _ask_held_ever(self) -> Asked[int]:
        """How many records the ledger has ever held."""
        return InternalTopicReader(self._flow.target).ask_end_offsets(self._ledger).then(lambda ends: sum(ends.values()))

    def _compact_ledger(self, lease: RunLease, held_ever: int) -> int:
        """Compact the ledger if it is due. Returns how many records it has ever held."""
        if not is_due(held_ever, lease.record):
            return held_ever
        lease.confirm()  # an older run must not take the compaction's transactional id from a newer one
        try:
            done = compact_ledger(self._flow)
        except Superseded as problem:
            lease.confirm()  # raises if a newer run has taken over; else another process compacts, and the next run may do it
            log.warning("another process compacts the ledger: %s", problem)
            return held_ever
        # The next compaction is due by the records that are written after this one.
        held_ever = self._ask_held_ever().answer()
        lease.write_record(tidied=held_ever, receipts=done.left)
        self._say(f"ledger: {len(done.replaced) + len(done.merged)} receipts became {len(done.merged)}")
        return held_ever

    def _index_losses(self, lease: RunLease, ledger_topic_id: str, held_ever: int) -> None:
        # Without topic ids Ferry cannot tell whether the ledger was deleted and created again.
        if ledger_topic_id not in {"", NO_ID} and loss_index.is_due(held_ever, lease.record.losses):
            lease.write_record(losses=index_losses(self._flow, lease.record.losses, ledger_topic_id, held_ever))

    def _decide(self, seen: FlowSnapshot) -> list[PartitionPlan]:
        return plan_partitions(seen.facts, rules_of(self._flow, self._request))

    def _plan(self, lease: RunLease, decide: Decide, **look: Any) -> tuple[FlowSnapshot, list[PartitionPlan]]:
        """Take a snapshot (`look`: options of take_snapshot), and plan. Failures are noted.

        Superseded if there are some and a newer run has taken over: it may have changed what looks like a failure here.
        """
        with ClusterAdmin(self._flow.source) as source, ClusterAdmin(self._flow.target) as target:
            seen = take_snapshot(self._flow, self._request, source, target, stable=True, **look)
            plans = self._without_topic(decide(seen), seen, source, target)
        planned = [plan.failure for plan in plans if plan.failure is not None]
        if planned:
            lease.confirm()
        self._failures.update(((failure.topic, failure.partition), failure) for failure in (*planned, *seen.unavailable, *seen.denied))
        return seen, plans

    def _without_topic(
        self, plans: Iterable[PartitionPlan], seen: FlowSnapshot, source: ClusterAdmin, target: ClusterAdmin
    ) -> list[PartitionPlan]:
        """The plans, where partitions fail whose remote topic was not created. The target is asked for the reason."""
        found = list(plans)
        missing = {
            (plan.facts.topic, plan.facts.remote_topic) for plan in found if plan.failure is None and plan.facts.remote_topic_id is None
        }
        if not missing:
            return found
        topics = plan_topics(self._flow, sorted(missing), seen.source_topics, seen.target_topics, source=source, target=target)
        nothing = dict.fromkeys((topic for topic, _ in missing), "it was not created in time; run again")
        return stopped_without_topic(found, nothing | why_missing(self._flow, topics, target))

    def _name_missing(self, lost: Iterable[LaneTask], plans: Iterable[PartitionPlan]) -> None:
        """Fail partitions of lost lanes that the clusters no longer show: the report would not name them otherwise.

        If a failure names their topic (partition -1), that is reason enough.
        """
        named = {plan.facts.key for plan in plans} | self._failures.keys()
        for part in (part for task in lost for part in task.partitions):
            if not named & {part.key, (part.topic, -1)}:
                self._fail(*part.key, "SourceMissing", "the source no longer had it when its lane was planned again")

    def _lane_tasks(self, plans: Iterable[PartitionPlan], held: Mapping[int, ProducerIdentity]) -> list[LaneTask]:
        at_work = [plan for plan in plans if plan.has_work and plan.facts.remote_topic_id is not None]
        asked = without_size(at_work)
        sizes: Mapping[TopicPartition, int] = {}
        with suppress(FerryError):  # they only balance the lanes
            sizes = ask_cluster(self._flow.source, log_sizes, asked) if asked else sizes
        each = bytes_an_offset(at_work, sizes)
        parts = [partition_task(plan, each[plan.facts.key]) for plan in at_work]
        new = spread([part for part in parts if part.key not in self._lane_of], self._lanes, self._flow.transaction_bytes)
        self._lane_of |= {part.key: lane for lane, group in enumerate(new) for part in group}
        by_lane = grouped((self._lane_of[part.key], part) for part in parts)
        return [LaneTask(lane, self._flow.transactional_id(lane), held[lane], tuple(tasks)) for lane, tasks in sorted(by_lane.items())]

    def _job(self, seen: FlowSnapshot, held: Mapping[int, ProducerIdentity]) -> CopyJob:
        ledger = seen.target_topics[self._ledger]
        producers = frozenset(identity.producer_id for identity in held.values())
        rate = self._flow.max_bytes_per_second
        return CopyJob(self._flow, self._request.run_id, ledger.topic_id or "", ledger.partitions, rate, producers)

    def _run_lanes(
        self, job: CopyJob, tasks: list[LaneTask], out: LanesOut, progress: Progress, more: Callable[[], list[LaneTask]] = list
    ) -> None:
        """Run `tasks`, and lanes that `more` gives meanwhile. `out` knows which were lost."""
        out.give(tasks)
        with closing(self._runner.run(job, tasks, more)) as results:  # if an error is raised here, the workers end first
            for result in results:
                self._cpu_seconds += result.cpu_seconds
                lost = self._take_result(result)
                out.take(result.lane, lost)
                progress.lanes_done += lost is None
        out.lose_the_rest()

    def _take_result(self, result: LaneResult) -> str | None:
        for outcome in result.partitions:
            key = (outcome.topic, outcome.partition)
            self._failures.pop(key, None)
            if outcome.failure is not None:
                self._fail(*key, outcome.failure.error, outcome.failure.problem)
        if result.fenced:
            return "it was fenced"
        if result.failure is None:
            return None
        if result.failure.passing:
            self._unreachable = result.failure.problem if result.failure.unreachable else self._unreachable
            return result.failure.problem
        self._fail("", -1, result.failure.error, result.failure.problem)
        self._stopped_lanes.add(result.lane)
        return None

    def _give_up(self, tasks: Iterable[tuple[LaneTask, str]], attempts: str) -> None:
        for task, why in tasks:
            for partition in task.partitions:
                problem = f"lane {task.lane} did not finish in {attempts}: {why}"
                self._fail(partition.topic, partition.partition, "PartitionUnavailable", problem)

    def _fail(self, topic: str, partition: int, error: str, problem: str) -> None:
        self._failures[topic, partition] = PartitionFailure(topic, partition, error, problem)

    def _write_opened(self) -> None:
        """NewerFormat, before anything is written."""
        newer, asked = ask_syncs_done(self._flow), InternalTopicReader(self._flow.target).ask_end_offsets(self._ledger)
        opened, ends = read_run_records(self._flow, self._request.run_id).opened, asked.answer()
        newer.answer()
        if opened is None:
            opened = RunOpened(self._request.run_id, time_now(), self._request.bound, ends)
            write_run_record(self._flow, opened)
        self.ledger_ends = opened.ledger_ends

    def _write_result(self, superseded: str | None = None, *, seconds: float | None = None) -> None:
        cpu = self._cpu_seconds + sum(os.times()[:2])
        write_run_record(
            self._flow,
            RunResult(
                run_id=self._request.run_id,
                finished=time_now(),
                seconds=round(time.monotonic() - self._started, 3),
                cpu_seconds=round(cpu, 3),
                failed=tuple(self._failures.values()),
                skipped=self._skipped,
                superseded=superseded,
            ),
            seconds=seconds,
        )


def partition_task(plan: PartitionPlan, offset_bytes: float) -> PartitionTask:
    """The lane's task for a planned partition, whose remote topic must exist. `offset_bytes` as of PartitionTask."""
    facts = plan.facts
    return PartitionTask(
        *facts.existing,
        position=plan.position,
        segments=plan.segments,
        last_epoch=plan.last_epoch,
        seed=plan.seed,
        foreign=plan.foreign,
        batch_limit=facts.batch_limit,
        excluded=facts.guard.excluded,
        replaces_offset=plan.seed is not None and facts.committed is not None,
        series=plan.series,
        record_bytes=facts.head.record_bytes if facts.head is not None else 0,
        offset_bytes=offset_bytes,
    )
