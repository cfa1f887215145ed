"""Which lane has which partition during a run (pure).

A partition keeps its lane until the lane ends: a lane that was lost gets its partitions again. While a run follows, a lane ends before the
other lanes if one of its partitions fails. Then its other partitions are `left`, and the driver gives them another lane. The partition that
failed would end the next lane too. So it joins others only after a pause, which doubles each time.

Each lane costs transactions of its own. So a run that follows begins with as few lanes as its backlog is worth. A lane that falls behind
while there is room ends too, and its partitions are spread over more lanes.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.config import Flow
from ferry.copying.lane_messages import LaneResult, LaneTask, PartitionTask
from ferry.copying.lanes import balance, number_of_lanes, spread
from ferry.copying.partition_plan import PartitionPlan

# The shortest pause after which a partition that has failed joins a lane of others.
JOIN_SECONDS = 60.0


class LaneAssignment:
    """`lanes`: how many the run has, known with the plan. `used`: those that have run. `left`: partitions that wait for one."""

    def __init__(self, flow: Flow, width: Callable[[], int] | None = None, is_far: Callable[[], bool] = lambda: False) -> None:
        """`width`: how many lanes are worth having if all of them run at the same time, as those that follow do (None: they do not).

        `is_far`: whether one lane alone may be slow because a cluster is far away.
        """
        self._flow, self._width, self._is_far = flow, width, is_far
        self.lanes = 0
        self.more = 1  # how many lanes get the partitions that are `left`
        self.used: set[int] = set()
        self.left: set[TopicPartition] = set()
        self._lane_of: dict[TopicPartition, int] = {}
        self._failures: Counter[TopicPartition] = Counter()
        self._joins_at: dict[TopicPartition, float] = {}

    def decide(self, partitions: int) -> None:
        """The number of lanes, by the number of partitions with work."""
        self.lanes = number_of_lanes(partitions, self._flow.lanes)

    def has(self, lanes: Collection[int], key: TopicPartition) -> bool:
        """Whether one of these lanes has the partition."""
        return self._lane_of.get(key) in lanes

    def is_new(self, key: TopicPartition) -> bool:
        """Whether no lane has it."""
        return key not in self._lane_of

    def tasks(self, parts: Sequence[PartitionTask], held: Mapping[int, ProducerIdentity], lanes: Sequence[int] = ()) -> list[LaneTask]:
        """The tasks of lanes. Partitions that have none are spread over `lanes` (none given: over all)."""
        without = [part for part in parts if self.is_new(part.key)]
        groups = zip(lanes, balance(without, len(lanes)), strict=False) if lanes else enumerate(self._spread(without))
        self._lane_of |= {part.key: number for number, group in groups for part in group}
        by_lane = grouped((self._lane_of[part.key], part) for part in parts)
        grows = self._width is not None and len({*self._lane_of.values()}) < self._width() and self._may_grow
        return [
            LaneTask(number, self._flow.transactional_id(number), held[number], tuple(found), grows=grows and len(found) > 1)
            for number, found in sorted(by_lane.items())
        ]

    def free_lanes(self, held: Iterable[int], out: Collection[int]) -> list[int]:
        """Lanes for what is `left`, that are held and not handed out; the next number if there is none."""
        wanted = min(self.more, self._width() - len(out)) if self._width is not None else 1
        lanes = sorted(set(held) - set(out))[: max(1, wanted)] or [self.lanes]
        self.lanes = max(self.lanes, lanes[-1] + 1)
        return lanes

    def smallest(self, lanes: Collection[int]) -> int:
        """The lane of `lanes` that has the fewest partitions."""
        sizes = Counter(self._lane_of.values())
        return min(lanes, key=lambda lane: (sizes[lane], lane))

    def end(self, result: LaneResult) -> None:
        """A lane of a run that follows has ended by itself."""
        failed = {TopicPartition(outcome.topic, outcome.partition) for outcome in result.partitions if outcome.failure is not None}
        self.left |= self.drop_lane(result.lane) - failed
        self.more = len(self.left) if result.behind else 1

    def fail(self, key: TopicPartition, now: float) -> None:
        """A lane has stopped the partition. `now`: in monotonic seconds."""
        pause = max(JOIN_SECONDS, self._flow.mirroring.refresh_topics_interval)
        self._joins_at[key] = now + pause * 2 ** self._failures[key]
        self._failures[key] += 1

    def forget(self, key: TopicPartition) -> None:
        """A lane has copied some of the partition since it failed."""
        del self._failures[key]
        self._joins_at.pop(key, None)

    def may_join(self, key: TopicPartition, now: float) -> bool:
        """Whether the partition may be put into a lane of others."""
        return now >= self._joins_at.get(key, now)

    def drop_lane(self, lane: int) -> set[TopicPartition]:
        """Take all partitions from the lane. Returns them."""
        keys = {key for key, number in self._lane_of.items() if number == lane}
        self.drop(keys)
        return keys

    def drop(self, keys: Iterable[TopicPartition]) -> None:
        """These partitions have no lane any more."""
        for key in keys:
            self._lane_of.pop(key, None)

    def _spread(self, parts: Sequence[PartitionTask]) -> list[list[PartitionTask]]:
        """Partitions by lane. Lanes that follow run all at the same time, and each has transactions of its own: so there are few lanes."""
        if self._width is None:
            return spread(parts, self.lanes, self._flow.transaction_bytes)
        most = min(self.lanes, self._width())
        return spread(parts, most, self._flow.transaction_bytes) if most > 1 and self._may_grow else balance(parts, most)

    @property
    def _may_grow(self) -> bool:
        """Whether the number of lanes may change while a run follows. A limit for the bandwidth has been divided among them."""
        return self._flow.lanes is None and self._flow.max_bytes_per_second is None and not self._is_far()


def partition_task(plan: PartitionPlan, offset_bytes: float, *, flushed: bool) -> PartitionTask:
    """The lane's task for a planned partition, whose remote topic must exist. `offset_bytes`, `flushed`: as of PartitionTask."""
    facts = plan.facts
    behind = facts.head is not None and facts.committed is not None and facts.committed < facts.head.position
    return PartitionTask(
        *facts.existing,
        position=plan.position,
        segments=plan.segments,
        last_epoch=plan.last_epoch,
        seed=plan.seed,
        foreign=plan.foreign,
        batch_limit=facts.batch_limit,
        excluded=facts.guard.excluded,
        replaces_offset=(plan.seed is not None and facts.committed is not None) or behind,
        series=plan.series,
        record_bytes=facts.head.record_bytes if facts.head is not None else 0,
        offset_bytes=offset_bytes,
        flushed=flushed,
        explained_end=facts.explained_end,
        unopened=flushed and (facts.head is None or facts.head.remote_end < 0),
    )
