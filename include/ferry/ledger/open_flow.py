"""A flow whose clusters are open, with its state as far as it was read. An entry point opens it once and hands it down.

The state is read at its first use and kept. A caller that decides about records, or that has waited, reads it anew: then all earlier
readings are forgotten. If a reading fails, nothing is kept, so the next use reads again. Not for several threads.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked
from ferry.clusters.open_cluster import OpenCluster, OpenClusters
from ferry.config import Cluster, Flow
from ferry.errors import ClusterUnreachable
from ferry.ledger.formats import place_of
from ferry.ledger.state import CLAIM_KEY, LOSS_KEY, RECOVERY_KEYS, Claim, FlowState, fold_state
from ferry.policy.naming import is_state_topic

T = TypeVar("T")
# Keys and values in log order. A value is None where the key was removed.
StateRecords = Sequence[tuple[bytes, bytes | None]]


class OpenFlow:
    """`flow`: its config. `source` and `target`: its clusters."""

    def __init__(self, flow: Flow, clusters: OpenClusters) -> None:
        self.flow, self._clusters = flow, clusters
        self.source, self.target = clusters.of(flow.source), clusters.of(flow.target)
        self._records: Mapping[bytes, bytes | None] | None = None
        self._folded: dict[bytes | tuple[bytes, ...], FlowState] = {}
        self._claims: dict[str, Mapping[str, Claim]] = {}
        self._read: dict[object, Any] = {}
        # The ends of what this process wrote under a fence. A log that reaches there has all that was written before.
        self.written: dict[TopicPartition, int] = {}

    def opposite(self) -> "OpenFlow":
        """The flow with source and target exchanged (Flow.opposite), with the same open clusters. Its state is not read yet."""
        return self.back(self.flow.opposite())

    def back(self, reverse: Flow) -> "OpenFlow":
        """A flow in the other direction, with the same open clusters where its settings of them are the same."""
        return OpenFlow(reverse, self._clusters)

    def first_contact(self) -> None:
        """Connect to both clusters now (as of ConnectedCluster). The source is asked first, so it is known whether it answers."""
        self.source.first_contact()
        try:
            self.target.first_contact()
        except ClusterUnreachable as away:
            raise type(away)(f"{away}; cluster {self.source.alias} answers") from away

    @property
    def state(self) -> FlowState:
        """What the flow keeps on the target; empty if its topic is missing. Does not wait for open transactions."""
        return self._fold(b"")

    @property
    def recovery(self) -> FlowState:
        """The state, but only its records about failovers. So records of other kinds that this Ferry cannot read do not matter."""
        return self._fold(RECOVERY_KEYS)

    @property
    def acknowledged(self) -> FlowState:
        """The state, but only its records about losses that an operator has seen, for the same reason."""
        return self._fold(LOSS_KEY)

    def state_among(self, target_topics: Collection[str]) -> FlowState:
        """The state; empty if its topic is not one of those that the target has and shows."""
        return self.state if self._records is not None or self.flow.state_topic in target_topics else FlowState()

    def ask_anew(self, *, stable: bool) -> Asked[Self]:
        """Begin to read the state from the start of its topic. The answer is this flow, which keeps the state.

        `stable`: wait for open transactions, because the newest record decides.
        """
        self._forget_state()
        return ask_state_records(self.target, self.flow.state_topic, complete=stable, least=self.written).then(self._keep)

    def once(self, read: Callable[["OpenFlow"], T]) -> T:
        """The result of `read` for this flow. It reads only if no result is kept."""
        if read not in self._read:
            self._read[read] = read(self)
        found: T = self._read[read]
        return found

    def anew(self) -> None:
        """Forget what was read."""
        self._forget_state()
        self._read.clear()

    def _forget_state(self) -> None:
        self._records = None
        self._folded.clear()
        self._claims.clear()

    def side(self, cluster: Cluster) -> OpenCluster:
        """The source or the target, whichever `cluster` is."""
        return self.source if cluster.alias == self.source.alias else self.target

    def claims(self, target_topics: Collection[str], remote_topics: Iterable[str]) -> dict[str, str]:
        """By remote topic, the flow that writes to it; complete for `remote_topics`. Claims of this flow win.

        The state of other flows is read only if this one has not claimed all `remote_topics`, up to where an open transaction begins.
        """
        own = self.state_among(target_topics).claims
        others: Iterable[Mapping[str, Claim]] = ()
        if not own.keys() >= set(remote_topics):
            names = [name for name in target_topics if is_state_topic(name) and name != self.flow.state_topic]
            asked = {name: _ask_claims(self.target, name) for name in names if name not in self._claims}
            self._claims.update((name, records.answer()) for name, records in asked.items())
            others = (self._claims[name] for name in names)
        return {topic: claim.flow for claims in (*others, own) for topic, claim in claims.items()}

    def _keep(self, records: StateRecords) -> Self:
        self._forget_state()
        self._records = dict(records)  # the newest of each key
        return self

    def _fold(self, keys: bytes | tuple[bytes, ...]) -> FlowState:
        if self._records is None:
            self.ask_anew(stable=False).answer()
        if keys not in self._folded:
            where = place_of(self.flow.target, self.flow.state_topic)
            chosen = ((key, value) for key, value in (self._records or {}).items() if key.startswith(keys))
            self._folded[keys] = fold_state(chosen, where)
        return self._folded[keys]


def ask_state_records(target: OpenCluster, topic: str, *, committed: bool = True, **more: Any) -> Asked[StateRecords]:
    """A state topic of the target, from its start; empty if it is missing. Options as of InternalTopicReader."""
    read = target.reader(committed=committed).read(topic, **more)
    return Asked(lambda: [(record.key, record.value) for record in read])


def _ask_claims(target: OpenCluster, topic: str) -> Asked[Mapping[str, Claim]]:
    """By remote topic, what another flow has claimed in its state `topic`, up to where an open transaction begins."""

    def claims(records: StateRecords) -> Mapping[str, Claim]:
        chosen = ((key, value) for key, value in records if key.startswith(CLAIM_KEY))
        return fold_state(chosen, place_of(target.cluster, topic)).claims

    return ask_state_records(target, topic, complete=False).then(claims)


@contextmanager
def open_flow(flow: Flow) -> Iterator[OpenFlow]:
    """The flow, whose clusters are connected at the first question to them, and closed at the end."""
    with OpenClusters() as clusters:
        yield OpenFlow(flow, clusters)


@contextmanager
def contacted_flow(flow: Flow) -> Iterator[OpenFlow]:
    """The same for a person who waits: both clusters are connected at once. ClusterUnreachable after ten seconds if one is away."""
    with open_flow(flow) as opened:
        opened.first_contact()
        yield opened
