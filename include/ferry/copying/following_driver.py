"""The driver of a copy that follows: it looks after the lanes until the time of the run is over, or until another run takes the flow.

It never sleeps while lanes run, because they may run in its thread. Each time that the runner asks for more lanes, it looks around:
whether the flow is still its own, which lost lanes may run again, and which partitions have no lane.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import Any

from ferry import clock
from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.committed import Committed
from ferry.copying.driver import FIRST_PAUSE_SECONDS, LOOK_SECONDS, CopyDriver
from ferry.copying.fencing import RunLease
from ferry.copying.lane_assignment import LaneAssignment
from ferry.copying.lane_attempts import LanesOut
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask, PartitionTask
from ferry.copying.lane_runner import is_far
from ferry.copying.lanes import number_of_lanes
from ferry.copying.partition_plan import PartitionPlan
from ferry.copying.progress import beside
from ferry.copying.run_liveness import FOLLOW_LOOK_SECONDS
from ferry.copying.snapshot import FlowSnapshot
from ferry.copying.upkeep import UpkeepBeside
from ferry.errors import FerryError, NoExecutors, Superseded, count_of
from ferry.syncs.topics import sync_topics


class FollowingDriver(CopyDriver):
    """One try of a run that follows."""

    def __init__(self, *run: Any, until: float, meanwhile: Callable[[clock.Event], None], **more: Any) -> None:
        """`run`, `more`: as of CopyDriver. `until`: when the run ends, in seconds since the epoch.

        `meanwhile`: called in a thread while lanes run, with an event that says that they have ended.
        """
        super().__init__(*run, **more)
        self._until, self._meanwhile = until, meanwhile
        self._assignment = LaneAssignment(self._flow, lambda: self._runner.width, cache(lambda: is_far(self._opened)))
        self._looked = self._refreshed = clock.monotonic()
        self._again_at = 0.0  # when lost lanes may be planned again; 0: at once
        self._interrupt_at = 0.0  # when lanes that are to end are ended, if they have not by themselves
        self._upkeep: UpkeepBeside | None = None  # known with the job

    def _warm_up(self) -> None:
        with suppress(NoExecutors):  # the run that copies now has all cores, and leaves them when it loses its lanes
            self._runner.warm_up(number_of_lanes(0, self._flow.lanes))  # that run goes on meanwhile

    def _superseded(self, problem: Superseded) -> None:  # noqa: ARG002 - no error: the result names the other run
        self._give_way(self.records.taker())

    @contextmanager
    def _beside(self, committed: Committed) -> Iterator[None]:
        with super()._beside(replace(committed, left=None, follows=True)), beside("ferry-meanwhile", self._meanwhile):
            yield

    def _run_all_lanes(self, job: CopyJob, pending: list[LaneTask], out: LanesOut, more: Callable[[], list[LaneTask]]) -> None:
        self._upkeep = UpkeepBeside(self._flow, job.ledger_topic_id, self._say)
        while pending or out.lost or self._time_is_left:
            if pending:
                self._run_lanes(job, pending, out, more)
            pending = more()
            if not pending and (out.lost or self._time_is_left):  # what failed is tried again later
                clock.sleep(FIRST_PAUSE_SECONDS)

    def _tidy(self, lease: RunLease, job: CopyJob, seen: FlowSnapshot) -> None:
        if self._upkeep is not None:
            self._upkeep.end(lease)
        super()._tidy(lease, job, seen)

    @property
    def _time_is_left(self) -> bool:
        return clock.time() < self._until

    def _taken_back(self, lease: RunLease, held: dict[int, ProducerIdentity], out: LanesOut) -> list[LaneTask]:
        """Take lost lanes back like CopyDriver. If no lane is lost, or if it is too early, look around."""
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

        found = self._planned_again(lease, concerns=concerns)
        if found is None:
            self._again_at = clock.monotonic() + FIRST_PAUSE_SECONDS
            return []
        self._again_at = 0.0
        seen, plans = found
        before = out.lost_partitions
        self._plans.name_missing(before, plans)
        if waiting:
            held |= self._prepare(lease, seen, plans)
            self._assignment.left -= waiting
        tasks = self._give_again(plans, {**held, **again}, out, lanes=[] if takes_more is None else [takes_more])
        again_in_lanes = {part.key for task in tasks for part in task.partitions}
        self._assignment.drop(key for key in before if key not in again_in_lanes)
        return tasks

    def _must_wait(self, out: LanesOut) -> bool:
        """Whether it is too early to take lost lanes back."""
        now = clock.monotonic()
        self._again_at = self._again_at or (now + FIRST_PAUSE_SECONDS * 2**out.failures if out.failures else now)
        return now < self._again_at

    def _look_around(self, lease: RunLease, held: dict[int, ProducerIdentity], out: LanesOut) -> list[LaneTask]:
        """Superseded if another run has taken the flow over.

        Returns a lane of partitions that have none: of lanes that ended because a partition failed, and, at the interval of
        `refresh.topics`, new ones and those that failed.
        """
        now = clock.monotonic()
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

    def _new_lane(self, lease: RunLease, held: dict[int, ProducerIdentity], out: LanesOut, *, refresh: bool) -> list[LaneTask]:
        if refresh and not self._request.topics:
            self._opened.anew()
            sync_topics(self._opened)
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
            now = clock.monotonic()
            self._assignment.left = left | {
                plan.facts.key for plan in new if self._has_lane(plan) and self._assignment.may_join(plan.facts.key, now)
            }
            if self._assignment.left:
                self._interrupt(self._assignment.smallest(out.tasks), lease, out)
            return []
        lanes = self._assignment.free_lanes(held, out.tasks)
        if used := self._assignment.used.intersection(lanes):
            held |= lease.retake(used)
        held |= self._prepare(lease, seen, new)
        tasks = self._lane_tasks(new, held, lanes=lanes)
        for task in tasks:
            self._say(f"lane {task.lane} goes on with {count_of(len(task.partitions), 'partition')}")
        out.give(tasks)
        self._assignment.used.update(lanes)
        self._assignment.left -= left
        return tasks

    def _interrupt(self, lane: int, lease: RunLease, out: LanesOut) -> None:
        """Let a lane end, so that it gets more partitions. For its assignment listener, it first may end by itself: it is fenced."""
        out.interrupted.add(lane)
        if self._flow.handling.assignment_listener:
            lease.retake([lane])
            self._interrupt_at = clock.monotonic() + 2 * LOOK_SECONDS

    def _task(self, plan: PartitionPlan, offset_bytes: float) -> PartitionTask:
        return replace(super()._task(plan, offset_bytes), follows=True, other_ledger=plan.facts.guard.read)

    def _has_lane(self, plan: PartitionPlan) -> bool:
        """Whether a lane gets the partition. Lanes also watch partitions that have nothing to copy now."""
        return plan.has_work or plan.failure is None

    def _job(self, seen: FlowSnapshot, held: Mapping[int, ProducerIdentity]) -> CopyJob:
        return replace(super()._job(seen, held), follow_until=self._until)

    def _take_result(self, result: LaneResult, task: LaneTask) -> str | None:
        lost = super()._take_result(result, task)
        for outcome in result.partitions:
            if outcome.failure is not None:
                self._say(f"{outcome.topic}-{outcome.partition} stops: {outcome.failure.error}: {outcome.failure.problem}")
        if result.failure is None:
            self._assignment.end(result)
        elif lost is None:
            self._say(f"lane {result.lane} stops: {result.failure.error}: {result.failure.problem}")
            self._assignment.drop_lane(result.lane)
        return lost

    def _went_on(self, result: LaneResult, task: LaneTask) -> Iterable[TopicPartition]:
        """Only partitions with copied records: the others may fail in the next lane again."""
        began = {part.key: part.position for part in task.partitions}
        positions = {TopicPartition(outcome.topic, outcome.partition): outcome.position for outcome in result.partitions}
        return [key for key, position in positions.items() if position > began.get(key, position)]
