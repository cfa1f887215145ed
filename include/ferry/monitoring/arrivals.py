"""Looks again and again whether the source has records that a flow has not copied, and decides when a run should start for them.

A look asks the target for the flow's positions and the source for the ends of its partitions. Now and then it also asks for all topics.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from ferry import clock
from ferry.clusters.groups.coordination import ask_positions
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.ledger.open_flow import OpenFlow, open_flow

# After a run that has changed no position, the next one starts after this many seconds. Each such run doubles the pause.
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0

# By source partition, the flow's position (None: it has none yet) and the last stable offset behind it.
Behind = Mapping[TopicPartition, tuple[int | None, int]]


def behind(
    places: Mapping[TopicPartition, TopicPartition], positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> Behind:
    """The partitions that a run would copy or name (pure). If a log ends before the position, it was truncated, or the topic is new.

    `places`: the remote partition of each source partition; `positions` are by remote partition.
    """
    found = {key: (positions.get(place), ends[key]) for key, place in places.items() if key in ends}
    return {key: (position, end) for key, (position, end) in found.items() if position is None or position != end}


@dataclass(frozen=True)
class Starts:
    """When runs start (pure). `found`: the partitions behind when the last run started. `at`: when it started, or was last active, in s."""

    found: Behind = field(default_factory=dict)
    at: float = -math.inf
    pause: float = 0.0

    def due(self, now_behind: Behind, now: float) -> bool:
        """Whether a run should start: something is behind, and the last run has helped or is long over."""
        return bool(now_behind) and (self._moved(now_behind) or now >= self.at + self.pause)

    def started(self, now_behind: Behind, now: float) -> "Starts":
        pause = FIRST_PAUSE if self._moved(now_behind) else min(LONGEST_PAUSE, 2 * self.pause)
        return Starts(now_behind, now, pause)

    def _moved(self, now_behind: Behind) -> bool:
        """Whether a position has changed since the last start, or another partition is behind."""
        if not self.found or not now_behind.keys() <= self.found.keys():
            return True
        return any(key not in now_behind or now_behind[key][0] != position for key, (position, _) in self.found.items())


class Arrivals:
    """Looks at one flow. It keeps its clients between the looks, so all calls must come from one thread. `load` reads the config anew."""

    def __init__(self, load: Callable[[], Flow]) -> None:
        self._load = load
        self._scope = ExitStack()
        self._places: Mapping[TopicPartition, TopicPartition] = {}
        self._topics_due = -math.inf
        self._starts = Starts()
        self._opened: OpenFlow

    def look(self) -> Behind:
        """Partitions for which a run should start; empty: none should. Errors as of config and clusters; the next look connects anew."""
        if clock.monotonic() >= self._topics_due:
            self._look_at_topics()
        flow = self._opened.flow
        asked = ask_positions(self._opened.target, flow.position_group, stable=False)
        ends, _ = self._opened.source.admin.end_offsets(self._places)  # a partition without an answer has one at a later look
        found = behind(self._places, asked.answer(), ends)
        return found if self._starts.due(found, clock.monotonic()) else {}

    def started(self, found: Behind) -> None:
        """A run starts for what a look has found."""
        self._starts = self._starts.started(found, clock.monotonic())

    def still_active(self) -> None:
        """A run is active. A pause begins when it has ended."""
        self._starts = replace(self._starts, at=clock.monotonic())

    def close(self) -> None:
        self._scope.close()

    def _look_at_topics(self) -> None:
        self._scope.close()  # the clients are those of an earlier config
        flow = self._load()
        self._opened = self._scope.enter_context(open_flow(flow))
        topics = self._opened.source.admin.topics()
        is_heartbeats = flow.is_heartbeats
        # Every run writes a heartbeat to the source, for which no other run should start.
        pairs = [(topic, remote) for topic, remote in flow.topic_rules.select(topics).selected if not is_heartbeats(topic)]
        numbered = ((topic, remote, number) for topic, remote in pairs for number in range(topics[topic].partitions))
        self._places = {TopicPartition(topic, number): TopicPartition(remote, number) for topic, remote, number in numbered}
        mirroring = flow.mirroring
        refreshes = mirroring.refresh_topics_enabled and mirroring.refresh_topics_interval >= 0
        self._topics_due = clock.monotonic() + (mirroring.refresh_topics_interval if refreshes else math.inf)
