"""Batches that a message handler sends to other topics of the target than the remote topic (`ferry.handler.reroute`).

They are in the same transaction as the position of their source partition. The position must never pass a batch that is not appended, nor
stay behind one that is. So the batches of a source partition are appended in their order: while some of them wait for one partition of the
target, those for another one are held back. The lane sees only the remote partition (`home`) of each batch.

No ledger explains the records in the other topics. So before the first write, `rerouted_topics` refuses topics in which something else
relies on the ledger: remote topics of any flow, and topics of Ferry and MirrorMaker 2.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.config.settings import REROUTE
from ferry.copying.appender import Accepted, Appender, PartitionRefusal, RefusedRecord
from ferry.copying.lane_messages import PartitionTask
from ferry.errors import ConfigError
from ferry.policy.naming import is_ferry_topic
from ferry.policy.selection import Selection

Place = TopicPartition
# Batches of at most this many source partitions wait for one place at a time: their positions must be in the same transaction, and that
# holds few partitions after a broker has refused more.
HOMES_A_PLACE = 8


def rerouted_topics(
    flow: Flow, selection: Selection, target_topics: Mapping[str, TopicDescription], claims: Collection[str]
) -> dict[str, int]:
    """The topics' numbers of partitions. `claims`: remote topics of all flows. ConfigError for a topic that the handler must not choose."""
    if not flow.handling.message_handler:
        return {}
    sources, remotes = (set(names) for names in (dict(selection.selected), dict(selection.selected).values()))
    for name in flow.handling.reroute:
        if is_ferry_topic(name) or flow.policy.is_internal_topic(name):
            problem = "is an internal topic"
        elif name in remotes or name in claims:
            problem = "is a remote topic, whose offsets the ledger must explain"
        elif name in sources:
            problem = f"has the name of a topic that is copied from {flow.source.alias}: with this topic a record goes to its remote topic"
        elif name not in target_topics:
            problem = f"does not exist on {flow.target.alias}, or the user may not see it: create it, or grant Write"
        else:
            continue
        raise ConfigError(f"flow {flow.name}: {REROUTE}: topic {name} {problem}")
    return {name: target_topics[name].partitions for name in flow.handling.reroute}


class ReroutingAppender(Appender):
    """An appender that is given the batches of a source partition by its `home`, and sends each where the handler wants it."""

    def __init__(self, *shared: Any, tasks: Iterable[PartitionTask], **settings: Any) -> None:
        """`shared` and `settings`: as of Appender."""
        super().__init__(*shared, **settings)
        self._homes = {task.key: task.remote for task in tasks}
        # By home: where its unanswered batches are, and the upstream end of the last of them.
        self._ends: dict[TopicPartition, tuple[Place, int]] = {}
        self._held: dict[TopicPartition, deque[Any]] = {}
        # By place that is no home: the homes of its unanswered batches, and the homes that wait until there are fewer.
        self._at: defaultdict[Place, set[TopicPartition]] = defaultdict(set)
        self._queued: defaultdict[Place, set[TopicPartition]] = defaultdict(set)

    def enqueue(self, key: TopicPartition, batch: Any) -> None:
        self._held.setdefault(key, deque()).append(batch)
        self._weigh(batch, 1)
        self._go_on(key)

    def _go_on(self, home: TopicPartition) -> None:
        """Send what is held back of this home, up to the next change of the place."""
        held = self._held.get(home, ())
        while held:
            batch = held[0]
            place = home if batch.rerouted is None else Place(*batch.rerouted.to)
            if home in self._ends and self._ends[home][0] != place:
                return
            if place != home and home not in self._at[place]:
                if len(self._at[place]) >= HOMES_A_PLACE:
                    self._queued[place].add(home)
                    return
                self._at[place].add(home)
            self._weigh(held.popleft(), -1)
            self._ends[home] = place, batch.upstream_end
            super().enqueue(place, batch)
        self._held.pop(home, None)

    def _weigh(self, batch: Any, sign: int) -> None:
        self.waiting_bytes += sign * batch.size
        self.own_bytes += sign * batch.own

    def busy(self, key: TopicPartition) -> bool:
        return key in self._ends or key in self._held or super().busy(key)

    @property
    def idle(self) -> bool:
        return super().idle and not self._held

    def together(self, key: TopicPartition) -> tuple[TopicPartition, ...]:
        """Also the homes of the batches that wait there: their positions are committed with them."""
        return (key, *self._at.get(key, ()))

    def postpone(self, key: TopicPartition, problem: str) -> None:
        super().postpone(self._ends[key][0] if key in self._ends else key, problem)

    def take_answers(self) -> Iterator[Accepted | RefusedRecord]:
        for answered in super().take_answers():
            batch, place = answered.batch, answered.key
            home = place if batch.rerouted is None else self._homes[batch.rerouted.origin]
            if self._ends.get(home) == (place, batch.upstream_end):
                self._leave(home)
            if isinstance(answered, RefusedRecord):
                yield RefusedRecord(home, batch, _where(home, place, answered.problem))
            else:
                yield answered._replace(key=home)

    def _leave(self, home: TopicPartition) -> None:
        """Everything of this home is answered, or will not be sent."""
        place, _ = self._ends.pop(home, (home, 0))
        self._at[place].discard(home)
        self._go_on(home)
        for waiting in self._queued.pop(place, ()):
            self._go_on(waiting)

    def refused(self) -> Mapping[TopicPartition, PartitionRefusal]:
        """Refusals by home. Batches that were held back for it are dropped."""
        found: dict[TopicPartition, PartitionRefusal] = {}
        for place, refusal in self.refusals.items():
            for home in (place, *self._at.get(place, ())):
                found[home] = refusal._replace(problem=_where(home, place, refusal.problem))
        for home in found:
            for batch in self._held.pop(home, ()):
                self._weigh(batch, -1)
            self._leave(home)
        homes = set(self._homes.values())
        return {home: refusal for home, refusal in found.items() if home in homes}


def _where(home: TopicPartition, place: Place, problem: str) -> str:
    return problem if place == home else f"{problem} (in topic {place.topic}, partition {place.partition}, which the handler chose)"
