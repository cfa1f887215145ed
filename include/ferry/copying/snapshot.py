"""Takes a snapshot of a flow for the plan: what both clusters hold. It only reads.

A snapshot before the fencing (`stable=False`) does not wait for open transactions: it is good enough to show. After the fencing nobody
else can write; then the driver takes another snapshot, and plans by that one.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from uuid import UUID

from ferry.clusters.admin.api_versions import SOURCE_NEEDS, SOURCE_WISHES, Lack, lacking, target_features
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.groups.coordination import ask_positions
from ferry.clusters.logs.leader_epochs import ReadTo, diverged_logs
from ferry.clusters.net.failures import recipient
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked
from ferry.config import Flow
from ferry.copying.guard_reading import guarded
from ferry.copying.partition_plan import PartitionFacts, PlanRules
from ferry.copying.request import RunRequest
from ferry.copying.rerouting import rerouted_topics
from ferry.copying.source_offsets import SourceOffsets, read_source_offsets
from ferry.copying.topic_selection import allowed_topics
from ferry.copying.truncation import Truncation, is_believed, truncation_of
from ferry.errors import FerryError, PartitionUnavailable
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import read_coverage, read_receipts
from ferry.ledger.receipts import declared_ends
from ferry.ledger.run_report import PartitionFailure, Skipped
from ferry.ledger.state import FlowState, Head
from ferry.ledger.topic_ids import TopicIds, id_of, valid_receipts
from ferry.policy.naming import is_ferry_topic
from ferry.policy.selection import LeftOut, Selection
from ferry.syncs.config_differences import CLEANUP, COMPARED
from ferry.syncs.config_plan import BATCH_LIMIT, STAMPS, TIMESTAMP_TYPE, Entries
from ferry.syncs.sync_scope import refuse_same_cluster
from ferry.wire.batch import DEFAULT_BATCH_LIMIT

# How often positions are read that disagree, perhaps because a run commits just now.
LOOKS = 4
NOT_A_COPY = "the config is that of a connector that copies no records"


@dataclass(frozen=True)
class FlowSnapshot:
    """Everything that the plan needs."""

    selection: Selection
    source_topics: Mapping[str, TopicDescription]
    target_topics: Mapping[str, TopicDescription]
    facts: tuple[PartitionFacts, ...]
    state: FlowState
    claims: Mapping[str, str]  # by remote topic of the flow: which flow writes to it
    unavailable: tuple[PartitionFailure, ...] = ()  # the partitions without offsets from the source
    denied: tuple[PartitionFailure, ...] = ()  # topics of the flow that the source hides, or whose remote topic Ferry may not describe
    lacking: tuple[Lack, ...] = ()  # features that the clusters' releases lack
    # The entries of COMPARED: of the target's topics that exist and that a run may copy to, and of those that the caller also asked for.
    configs: Mapping[str, Entries] = field(default_factory=dict)
    reroute: Mapping[str, int] = field(default_factory=dict)  # numbers of partitions of topics that the message handler may choose
    alike: str = ""  # a warning of two clusters with one id
    begins: bool = False  # the run is the first one of the flow, or of topics that it alone copies, and must record where it starts

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return (*(Skipped(*entry) for entry in self.selection.skipped), *(Skipped(*lack) for lack in self.lacking))


def take_snapshot(
    opened: OpenFlow,
    request: RunRequest,
    *,
    stable: bool,
    ends: Mapping[TopicPartition, int] | None = None,
    for_a_run: bool = False,
    concerns: Callable[[str, int], bool] | None = None,
    beside: Set[str] = frozenset(),
) -> FlowSnapshot:
    """Ask both clusters. `ends`: the end bounds of an earlier snapshot of the same run, to keep.

    `concerns` (topic, partition): which source partitions to look at (None: all). Positions of others may be undecided meanwhile.
    `for_a_run`: for partitions with nothing to copy, Ferry asks only for their ends. Their `log_start` is their position then, and the
    configs of their remote topics are not known.
    `beside`: topics of the target whose configs the caller wants too, if they exist.
    """
    flow, source, target = opened.flow, opened.source.admin, opened.target.admin
    alike = refuse_same_cluster(opened)
    all_positions = ask_positions(opened.target, flow.position_group, stable=stable) if concerns is None else None
    # Whoever holds the flow has read its state before, so the leader is known: Ferry asks for it beside the topics.
    asked_state = opened.ask_anew(stable=True) if stable else None
    source_topics, target_topics = source.topics(), target.topics()
    lacks = lacking_features(opened, source_topics.values(), target_topics.values())
    matched = flow.topic_rules.select(source_topics) if flow.copies else Selection((), (LeftOut(f"flow {flow.name}", NOT_A_COPY, None),))
    places = _remote_places(matched, source_topics, concerns)
    there = None if concerns is None else [place for place in places.values() if place.topic in target_topics]
    state, positions = _read_positions(opened, target_topics, there, all_positions, asked_state)
    target_topics = _not_older(target_topics, state, matched, target)
    selection, denied = allowed_topics(flow, request, source, source_topics, matched, state)
    claims = opened.claims(target_topics, [*dict(selection.selected).values(), *flow.handling.reroute])
    reroute = rerouted_topics(flow, matched, target_topics, claims) if stable or for_a_run else {}
    asked = _Partitions.of(selection, source_topics, target_topics, places, state, positions, claims)
    rewritten = asked.rewritten(opened, source_topics)
    rest = asked.heads.keys() - rewritten if for_a_run and _leaves_at_rest(request) else ()
    offsets = read_source_offsets(flow, request, source, asked.first, state.heads.keys(), asked.head_positions, rest)
    found = _read_partitions(opened, request, asked, offsets, beside, rewritten)
    facts = guarded(opened, found.facts(ends or {}), source_topics, stable=stable)
    unavailable = tuple(PartitionFailure(*key, PartitionUnavailable.__name__, why) for key, why in offsets.problems.items())
    unread = ((topic, found.unread[name]) for topic, name in selection.selected if name in found.unread)
    hidden = (*denied, *(PartitionFailure(topic, -1, type(problem).__name__, str(problem)) for topic, problem in unread))
    begins = _begins(flow, request, asked, for_a_run=for_a_run, everything=concerns is None)
    return FlowSnapshot(
        selection, source_topics, target_topics, facts, state, claims, unavailable, hidden, lacks, found.configs, reroute, alike, begins
    )


def _not_older(
    topics: dict[str, TopicDescription], state: FlowState, matched: Selection, target: ClusterAdmin
) -> dict[str, TopicDescription]:
    """The target's topics; asked for again if a head names one that `topics` lacks: it was deleted, or a run has made it since."""
    remote = {topic: id_of(topics.get(name)) for topic, name in matched.selected}
    unknown = any(key.topic in remote and head.topic_ids.remote != remote[key.topic] for key, head in state.heads.items())
    return target.topics() if unknown else topics


def _leaves_at_rest(request: RunRequest) -> bool:
    """Whether the run needs nothing more of partitions with nothing to copy. One that follows may copy into every topic."""
    return request.since is None and request.follow_until is None


def _begins(flow: Flow, request: RunRequest, asked: "_Partitions", *, for_a_run: bool, everything: bool) -> bool:
    """As of FlowSnapshot. `everything`: the snapshot is about all partitions."""
    if not flow.copies or flow.start == "earliest" or asked.state.begun:
        return False
    return for_a_run and None in asked.first.values() if request.topics else everything


def _remote_places(
    selection: Selection, topics: Mapping[str, TopicDescription], concerns: Callable[[str, int], bool] | None
) -> dict[TopicPartition, TopicPartition]:
    """The remote partition of each source partition that concerns the caller."""
    return {
        TopicPartition(topic, number): TopicPartition(name, number)
        for topic, name in selection.selected
        for number in range(topics[topic].partitions)
        if concerns is None or concerns(topic, number)
    }


@dataclass(frozen=True)
class _Partitions:
    """The source partitions that a snapshot is about, and what the flow's own topics and its group say of them."""

    target_topics: Mapping[str, TopicDescription]
    places: Mapping[TopicPartition, TopicPartition]  # the remote partition of each
    ids: Mapping[str, TopicIds]  # of today's topics, by source topic
    state: FlowState
    positions: Mapping[TopicPartition, int]  # of the group, by remote partition
    claims: Mapping[str, str]  # by remote topic, which flow writes to it
    heads: Mapping[TopicPartition, Head]  # heads of today's topics
    first: Mapping[TopicPartition, int | None]  # as of FlowState.first_offset

    @classmethod
    def of(  # noqa: PLR0917 - the topics, the partitions, and what is known of them
        cls,
        selection: Selection,
        source_topics: Mapping[str, TopicDescription],
        target_topics: Mapping[str, TopicDescription],
        places: Mapping[TopicPartition, TopicPartition],
        state: FlowState,
        positions: Mapping[TopicPartition, int],
        claims: Mapping[str, str],
    ) -> "_Partitions":
        ids = {topic: TopicIds(id_of(source_topics[topic]), id_of(target_topics.get(name))) for topic, name in selection.selected}
        kept = {key: place for key, place in places.items() if key.topic in ids}
        heads = {key: state.heads[key] for key in kept if key in state.heads and state.heads[key].topic_ids == ids[key.topic]}
        first = {key: state.first_offset(key, ids[key.topic].source) for key in kept}
        return cls(target_topics, kept, ids, state, positions, claims, heads, first)

    @property
    def head_positions(self) -> dict[TopicPartition, int]:
        """By source partition, as the heads of today's topics say."""
        return {key: head.position for key, head in self.heads.items()}

    def rewritten(self, opened: OpenFlow, topics: Mapping[str, TopicDescription]) -> Collection[TopicPartition]:
        """Partitions whose source log holds other records before the position, though it may end there. Only an election brings this about.

        So Ferry asks only where the leader epoch is later than that of the last record that was copied.
        """
        later = {
            key: ReadTo(head.position, head.source_epoch)
            for key, head in self.heads.items()
            if 0 <= head.source_epoch < topics[key.topic].epoch_of(key.partition)
        }
        return diverged_logs(opened.source, later).keys()


@dataclass(frozen=True)
class _Findings:
    """What the clusters and the ledger say of the partitions of one snapshot."""

    flow: Flow
    asked: _Partitions
    offsets: SourceOffsets
    remote_ends: Mapping[TopicPartition, int]
    coverage: Mapping[TopicPartition, tuple[tuple[int, int], ...]]
    truncations: Mapping[TopicPartition, Truncation]
    explained_ends: Mapping[TopicPartition, int]
    # Of remote topics; `unread`: why those of a topic are not known. Ferry does not write to it then.
    configs: Mapping[str, Entries]
    unread: Mapping[str, FerryError]

    def facts(self, ends: Mapping[TopicPartition, int]) -> list[PartitionFacts]:
        """Of each partition that a run may copy. `ends`: end bounds to keep."""
        is_heartbeats = self.flow.is_heartbeats  # made anew each time that it is asked for
        found = []
        for key, place in self.asked.places.items():
            if key not in self.offsets.problems and place.topic not in self.unread:
                # Old heartbeats are worth nothing, and their topics are compacted.
                since = None if is_heartbeats(key.topic) else self.offsets.since.get(key)
                found.append(self._facts(key, place, ends.get(key), since))
        return found

    def _facts(self, key: TopicPartition, place: TopicPartition, end: int | None, since: int | None) -> PartitionFacts:
        asked, offsets = self.asked, self.offsets
        ids, description = asked.ids[key.topic], asked.target_topics.get(place.topic)
        ledger = asked.target_topics.get(self.flow.ledger_topic)
        limits = {name: entry.value or "" for name, entry in self.configs.get(place.topic, {}).items()}
        stable_end = offsets.stable_ends[key]
        return PartitionFacts(
            topic=key.topic,
            partition=key.partition,
            topic_id=UUID(ids.source),
            remote_topic=place.topic,
            remote_topic_id=UUID(ids.remote) if description else None,
            remote_partitions=description.partitions if description else 0,
            remote_end=self.remote_ends.get(place, 0),
            log_start=offsets.starts[key],
            end=min(stable_end, offsets.until.get(key, stable_end)) if end is None else end,
            stable_end=stable_end,
            start=offsets.policy[key],
            newer=(asked.first[key] or 0) < 0,
            since=since,
            head=asked.state.heads.get(key),
            committed=asked.positions.get(place),
            claimed_by=asked.claims.get(place.topic),
            covered=self.coverage.get(key, ()),
            compacted="compact" in limits.get(CLEANUP, ""),
            stamps_itself=limits.get(TIMESTAMP_TYPE) == STAMPS,
            ledger_topic_id=(ledger.topic_id or "") if ledger else "",
            batch_limit=int(limits.get(BATCH_LIMIT, DEFAULT_BATCH_LIMIT)),
            truncation=self.truncations.get(key),
            explained_end=self.explained_ends.get(key, -1),
        )


def _read_partitions(  # noqa: PLR0917 - what was asked and answered before
    opened: OpenFlow,
    request: RunRequest,
    asked: _Partitions,
    offsets: SourceOffsets,
    beside: Set[str],
    rewritten: Collection[TopicPartition],
) -> _Findings:
    """Ask the target and the ledger, and the source where its log seems to be truncated. `beside`: as of take_snapshot."""
    flow, target = opened.flow, opened.target.admin
    remote_ends = _unexplained_remote_ends(flow, target, asked)
    coverage = read_coverage(opened, {key: asked.ids[key.topic] for key in asked.places}) if request.since is not None else {}
    moving = {key.topic: place.topic for key, place in asked.places.items() if key not in offsets.at_rest}
    truncations = _truncations(opened, asked.heads.values(), offsets.stable_ends, rewritten)
    explained_ends = _explained_ends(opened, asked, remote_ends, moving)
    configs, unread = target.visible_configs(
        (beside | {remote for remote in moving.values() if not is_ferry_topic(remote)}) & asked.target_topics.keys(),
        to_alter=flow.mirroring.sync_topic_configs_enabled,
        keys=COMPARED,
    )
    return _Findings(flow, asked, offsets, remote_ends, coverage, truncations, explained_ends, configs, unread)


def _unexplained_remote_ends(flow: Flow, target: ClusterAdmin, asked: _Partitions) -> dict[TopicPartition, int]:
    """The ends of those remote partitions of which today's ledger has no head: somebody else may have written to them."""
    topics, heads = asked.target_topics, asked.state.heads
    ledger = topics.get(flow.ledger_topic)
    explained = {key for key, head in heads.items() if ledger is not None and head.ledger_topic_id == (ledger.topic_id or "")}
    unknown = [place for key, place in asked.places.items() if key not in explained and place.topic in topics]
    ends, _ = target.end_offsets([place for place in unknown if place.partition < topics[place.topic].partitions], committed=False)
    return ends


def lacking_features(opened: OpenFlow, source: Iterable[TopicDescription], target: Iterable[TopicDescription]) -> tuple[Lack, ...]:
    """Features that the flow would use and that the clusters' releases lack. BrokerTooOld if the flow cannot be copied without one."""
    needs, wishes = target_features(transactions=opened.flow.exactly_once)
    of_source = lacking(opened.source, source, needs=SOURCE_NEEDS, wishes=SOURCE_WISHES)
    return of_source + lacking(opened.target, target, needs=needs, wishes=wishes)


def _read_positions(
    opened: OpenFlow,
    target_topics: Mapping[str, TopicDescription],
    partitions: Iterable[TopicPartition] | None,
    first: Asked[dict[TopicPartition, int]] | None,
    asked_state: Asked[OpenFlow] | None,
) -> tuple[FlowState, dict[TopicPartition, int]]:
    """The flow's state, and the positions of its group, by remote partition (of `partitions`; None: of all).

    `first`: positions that were asked for already. `asked_state`: the state, if this process holds the flow. Both are read side by side.
    If it does not, a run may commit between the two reads. So positions that disagree are read again: only a disagreement that stays the
    same counts, and positions that keep changing are left out.
    """
    flow = opened.flow
    disagreed: dict[TopicPartition, tuple[int | None, int]] = {}
    for _ in range(LOOKS):
        if disagreed:
            opened.anew()
        asked, first = first or ask_positions(opened.target, flow.position_group, partitions, stable=asked_state is not None), None
        state = (opened if asked_state is None else asked_state.answer()).state_among(target_topics)
        positions = asked.answer()
        before, disagreed = disagreed, disagreements(state, positions)
        moving = {key for key, pair in disagreed.items() if before.get(key) != pair}
        if asked_state is not None or not moving:
            return state, positions
    return state, {key: position for key, position in positions.items() if key not in moving}


def disagreements(state: FlowState, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int | None, int]]:
    """Remote partitions whose group offset is not the head's position: the head's position (None: no head) and the group's offset."""
    heads = {TopicPartition(head.remote_topic, head.partition): head.position for head in state.heads.values()}
    return {key: (heads.get(key), position) for key, position in positions.items() if position != heads.get(key)}


def _truncations(
    opened: OpenFlow, heads: Iterable[Head], ends: Mapping[TopicPartition, int], rewritten: Collection[TopicPartition]
) -> dict[TopicPartition, Truncation]:
    """Source partitions whose log holds other records before the head's position than were copied; the ledger says what was copied.

    `ends`: last stable offsets. If a log ends at the position, Ferry asks for nothing more, unless it was `rewritten`. If the head has no
    epoch, only a log that ends before the position is noticed.
    """
    placed = {head.key: head for head in heads}
    asked = {
        key: head
        for key, head in placed.items()
        if (head.source_epoch >= 0 and (ends.get(key) != head.position or key in rewritten)) or ends.get(key, head.position) < head.position
    }
    diverged = diverged_logs(opened.source, {key: ReadTo(head.position, head.source_epoch) for key, head in asked.items()})
    found = {
        key: told if told.proven else told._replace(end=min(told.end, ends.get(key, told.end)))
        for key, told in diverged.items()
        if is_believed(asked[key], told)
    }
    if not found:
        return {}
    of_today = valid_receipts(read_receipts(opened, found), {key: asked[key].topic_ids for key in found})
    return {key: truncation_of(asked[key], divergence, of_today.get(key, ())) for key, divergence in found.items()}


def _explained_ends(
    opened: OpenFlow, asked: _Partitions, remote_ends: Mapping[TopicPartition, int], moving: Collection[str]
) -> dict[TopicPartition, int]:
    """Where the remote records end that receipts explain, of partitions where others may follow: those of a flush that was not recorded.

    Heads that were written without transactions say it. Otherwise the ledger does, for a flow that copies so from now on. `moving`: the
    source topics of which it matters.
    """
    heads, ids = asked.state.heads, asked.ids
    of_today = {key: heads[key] for key in asked.places if key in heads and heads[key].remote_topic_id == ids[key.topic].remote}
    found = {key: head.remote_end for key, head in of_today.items() if head.remote_end >= 0}
    if opened.flow.exactly_once:
        return found
    for key, place in asked.places.items():
        if key not in of_today:  # what is there before the flow has claimed the topic is not its own
            found[key] = 0 if place.topic in asked.state.claims else remote_ends.get(place, 0)
    return found | _ends_in_ledger(opened, {key: ids[key.topic] for key in of_today if key not in found and key.topic in moving})


def _ends_in_ledger(opened: OpenFlow, asked: Mapping[TopicPartition, TopicIds]) -> dict[TopicPartition, int]:
    """Where the remote records end that receipts of these partitions explain; 0: there is no receipt."""
    receipts = valid_receipts(read_receipts(opened, asked), asked, any_source=True) if asked else {}
    # Behind the last records of a transaction there is its marker.
    ends = {
        key: [max(declared_ends(told)), *(entry.downstream_end + bool(entry.counters.transactions) for entry in told)]
        for key, told in receipts.items()
    }
    return {key: max([0, *ends.get(key, [])]) for key in asked}


def rules_of(flow: Flow, request: RunRequest) -> PlanRules:
    start = flow.start if isinstance(flow.start, str) else flow.start.isoformat()
    return PlanRules(
        flow.name,
        request.run_id,
        on_recreate=flow.on_recreate,
        on_target_recreate=flow.on_target_recreate,
        start_policy=start,
        on_unexplained=flow.on_unexplained,
        on_unclear=flow.on_unclear,
        recipient=recipient(flow.target),
    )
