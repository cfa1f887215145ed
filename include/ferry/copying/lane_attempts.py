"""The lanes that a run has handed out: which of them were lost, and how often in a row without a commit.

The driver plans a lost lane again. If less is left to copy than before, the lost worker had committed something: attempts count from 0.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ferry import clock
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.lane_messages import LaneTask

# A lane runs again after a lost worker or a passing error. The pauses in between are longer than a broker's restart.
LANE_ATTEMPTS = 4
# A lane that was lost after this time had worked. Perhaps no records arrived that it could commit.
WORKED_SECONDS = 300.0
WORKER_DIED = "its worker died"
MORE_PARTITIONS = "it gets more partitions"


@dataclass
class LanesOut:
    """The lanes that the driver has handed out."""

    tasks: dict[int, LaneTask] = field(default_factory=dict)  # their tasks, by lane
    lost: dict[int, str] = field(default_factory=dict)  # by lane: why it was lost
    interrupted: set[int] = field(default_factory=set)  # lanes that the driver ends, to give them more partitions: that is no attempt
    _attempts: Counter[int] = field(default_factory=Counter)
    _given: dict[int, float] = field(default_factory=dict)

    def give(self, tasks: Sequence[LaneTask]) -> None:
        self.tasks.update((task.lane, task) for task in tasks)
        self._given |= dict.fromkeys((task.lane for task in tasks), clock.monotonic())

    def take(self, lane: int, lost: str | None) -> None:
        """A lane is done (None), or lost for this reason."""
        if lost is None:
            self.tasks.pop(lane, None)
            self.interrupted.discard(lane)
        else:
            self.lost[lane] = MORE_PARTITIONS if lane in self.interrupted else lost

    def lose_the_rest(self) -> None:
        """No worker is left: every lane that has not come back is lost."""
        self.lost = {lane: self.lost.get(lane, WORKER_DIED) for lane in self.tasks}

    @property
    def failures(self) -> int:
        """The most attempts in a row without a commit, over the lanes that are lost now."""
        return max((self._attempts[lane] for lane in self.lost), default=0)

    @property
    def lost_partitions(self) -> list[TopicPartition]:
        """The partitions of the lanes that are lost now."""
        return [part.key for lane in self.lost for part in self.tasks[lane].partitions]

    def give_again(self, planned: Iterable[LaneTask]) -> tuple[list[LaneTask], list[tuple[LaneTask, str]]]:
        """Of the lost lanes, which were `planned` again: those that are handed out now, and those to give up, with the reason.

        A lost lane that is not among them has nothing left to copy.
        """
        again, given_up = [], list[tuple[LaneTask, str]]()
        before = {lane: self.tasks.pop(lane) for lane in self.lost}
        for task in planned:
            last = before[task.lane]
            before_position = {part.key: part.position for part in last.partitions}
            moved = any(part.position > before_position.get(part.key, part.position) for part in task.partitions)
            worked = clock.monotonic() - self._given[task.lane] > WORKED_SECONDS
            committed = task.offsets < last.offsets or moved or worked
            self._attempts[task.lane] = 0 if committed else self._attempts[task.lane] + (task.lane not in self.interrupted)
            if self._attempts[task.lane] < LANE_ATTEMPTS:
                again.append(task)
            else:
                given_up.append((task, self.lost[task.lane]))
                del self._attempts[task.lane]
        self.interrupted -= self.lost.keys()
        self.lost = {}
        self.give(again)
        return again, given_up
