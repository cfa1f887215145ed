"""Takes a snapshot of a flow for the plan: what both clusters hold. It only reads.

A snapshot before the fencing (`stable=False`) does not wait for open transactions: it is good enough to show. After the fencing nobody
else can write; then the driver takes another snapshot, and plans by that one.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple
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
from ferry.config.keys import nearest_name
from ferry.copying.guard_reading import guarded
from ferry.copying.partition_plan import PartitionFacts, PlanRules
from ferry.copying.request import RunRequest, epoch_milliseconds
from ferry.copying.rerouting import rerouted_topics
from ferry.copying.truncation import Truncation, is_believed, truncation_of
from ferry.errors import ArgumentError, ConfigError, NotAuthorized, PartitionUnavailable
from ferry.ledger.reading import ask_own_state, read_claims, read_coverage, read_receipts, read_state
from ferry.ledger.receipts import declared_ends
from ferry.ledger.run_report import PartitionFailure, Skipped
from ferry.ledger.state import FlowState, Head
from ferry.ledger.topic_ids import TopicIds, id_of, valid_receipts
from ferry.permissions.hidden import Hidden, hidden_topics
from ferry.policy.naming import is_ferry_topic, is_machinery
from ferry.policy.selection import LeftOut, Selection
from ferry.syncs.config_differences import CLEANUP, COMPARED
from ferry.syncs.config_plan import BATCH_LIMIT, STAMPS, TIMESTAMP_TYPE, Entries
from ferry.syncs.context import refuse_same_cluster
from ferry.wire.batch import DEFAULT_BATCH_LIMIT

# How often positions are read that disagree, perhaps because a run commits just now.
LOOKS = 4
# A new leader knows the log's end as soon as its replicas have fetched from it once.
LAG_SECONDS, LAG_PAUSE_SECONDS = 3.0, 0.2
NOT_A_COPY = "the config is that of a connector that copies no records"


@dataclass(frozen=True)
class FlowSnapshot:
    """Everything that the plan needs. `claims`: by remote topic of the flow, which flow writes to it. `unavailable`:
    the partitions that the source gave no offsets of. `denied`: topics of the flow that the source hides, or whose remote topic Ferry may
    not describe. `lacking`: features that the clusters' releases lack. `configs`: the entries of COMPARED, of the target's topics that
    exist and that a run may copy to, and of those that the caller asked for beside them. `reroute`: the topics that the message handler
    may choose, with their numbers of partitions. `alike`: a warning of two clusters with one id. `begins`: a run is the
    first one of the flow, or of topics that alone it copies, and must record where it starts."""

    selection: Selection
    source_topics: Mapping[str, TopicDescription]
    target_topics: Mapping[str, TopicDescription]
    facts: tuple[PartitionFacts, ...]
    state: FlowState
    claims: Mapping[str, str]
    unavailable: tuple[PartitionFailure, ...] = ()
    denied: tuple[PartitionFailure, ...] = ()
    lacking: tuple[Lack, ...] = ()
    configs: Mapping[str, Entries] = field(default_factory=dict)
    reroute: Mapping[str, int] = field(default_factory=dict)
    alike: str = ""
    begins: bool = False

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return (*(Skipped(*entry) for entry in self.selection.skipped), *(Skipped(*lack) for lack in self.lacking))


def take_snapshot(
    flow: Flow,
    request: RunRequest,
    source: ClusterAdmin,
    target: ClusterAdmin,
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
    alike = refuse_same_cluster(flow, source, target)
    all_positions = ask_positions(flow.target, flow.position_group, stable=stable) if concerns is None else None
    # Whoever holds the flow has read its state before, so the leader is known: Ferry asks for it beside the topics.
    asked_state = ask_own_state(flow, stable=True, anew=True) if stable else None
    source_topics, target_topics = source.topics(), target.topics()
    lacks = lacking_features(flow, source_topics.values(), target_topics.values())
    selection = flow.topic_rules.select(source_topics) if flow.copies else Selection((), (LeftOut(f"flow {flow.name}", NOT_A_COPY, None),))
    places = {
        TopicPartition(topic, number): TopicPartition(name, number)
        for topic, name in selection.selected
        for number in range(source_topics[topic].partitions)
        if concerns is None or concerns(topic, number)
    }
    there = None if concerns is None else [place for place in places.values() if place.topic in target_topics]
    state, positions = _read_positions(flow, target_topics, there, all_positions, asked_state)
    copied = {head.topic for head in state.heads.values()}
    hidden = hidden_topics(flow, source, source_topics, copied) if flow.copies and not request.topics else ()
    denied = [PartitionFailure(entry.name, -1, NotAuthorized.__name__, entry.problem) for entry in hidden if entry.needed]
    if denied and not selection.selected:
        raise NotAuthorized("; ".join(failure.problem for failure in denied))
    whole = selection
    selection, refused = (narrow(selection, request), []) if request.topics else _told(flow, selection, source_topics, hidden, copied)
    remote = dict(selection.selected)
    claims = read_claims(flow, target_topics, state.claims, [*remote.values(), *flow.handling.reroute])
    reroute = rerouted_topics(flow, whole, target_topics, claims) if stable or for_a_run else {}
    places = {key: place for key, place in places.items() if key.topic in remote}
    ids = {topic: TopicIds(id_of(source_topics[topic]), id_of(target_topics.get(name))) for topic, name in selection.selected}
    known = {key: head for key, head in state.heads.items() if head.is_of(ids.get(head.topic))}
    # A run that follows may copy into every topic, and must know the limits of each.
    rest = for_a_run and request.since is None and request.follow_until is None
    first = {key: state.first_offset(key, ids[key.topic].source) for key in places}
    offsets = _offsets(flow, request, source, list(places), state, known, first, rest=rest)
    ledger = target_topics.get(flow.ledger_topic)
    explained = {key for key, head in state.heads.items() if ledger is not None and head.ledger_topic_id == (ledger.topic_id or "")}
    # Where today's ledger has no head, somebody else may have written.
    unknown = [place for key, place in places.items() if key not in explained]
    known_there = {name: description.partitions for name, description in target_topics.items()}
    remote_ends, _ = target.end_offsets([key for key in unknown if key.partition < known_there.get(key.topic, 0)], committed=False)
    coverage = read_coverage(flow, {key: ids[key.topic] for key in places}) if request.since is not None else {}
    moving = {key.topic for key in places if key not in offsets.at_rest}
    truncations = _truncations(flow, [known[key] for key in places if key in known], offsets.stable_ends)
    explained_ends = _explained_ends(flow, places, state, ids, remote_ends, moving)
    # Ferry does not write to a remote topic whose limits are not known.
    configs, unread = target.visible_configs(
        (beside | {remote[topic] for topic in moving if not is_ferry_topic(remote[topic])}) & target_topics.keys(),
        to_alter=flow.mirroring.sync_topic_configs_enabled,
        keys=COMPARED,
    )
    denied += [
        *refused,
        *(PartitionFailure(topic, -1, type(unread[name]).__name__, str(unread[name])) for topic, name in remote.items() if name in unread),
    ]
    is_heartbeats = flow.is_heartbeats  # made anew each time that it is asked for
    facts = []
    for key, place in places.items():
        if key in offsets.problems or place.topic in unread:
            continue
        description = target_topics.get(place.topic)
        limits = {name: entry.value or "" for name, entry in configs.get(place.topic, {}).items()}
        stable_end = offsets.stable_ends[key]
        end = (ends or {}).get(key, min(stable_end, offsets.until.get(key, stable_end)))
        facts.append(
            PartitionFacts(
                topic=key.topic,
                partition=key.partition,
                topic_id=UUID(ids[key.topic].source),
                remote_topic=place.topic,
                remote_topic_id=UUID(ids[key.topic].remote) if description else None,
                remote_partitions=description.partitions if description else 0,
                remote_end=remote_ends.get(place, 0),
                log_start=offsets.starts[key],
                end=end,
                stable_end=stable_end,
                start=offsets.policy[key],
                newer=(first[key] or 0) < 0,
                # Old heartbeats are worth nothing, and their topics are compacted.
                since=None if is_heartbeats(key.topic) else offsets.since.get(key),
                head=state.heads.get(key),
                committed=positions.get(place),
                claimed_by=claims.get(place.topic),
                covered=coverage.get(key, ()),
                compacted="compact" in limits.get(CLEANUP, ""),
                stamps_itself=limits.get(TIMESTAMP_TYPE) == STAMPS,
                ledger_topic_id=(ledger.topic_id or "") if ledger else "",
                batch_limit=int(limits.get(BATCH_LIMIT, DEFAULT_BATCH_LIMIT)),
                truncation=truncations.get(key),
                explained_end=explained_ends.get(key, -1),
            )
        )
    checked = guarded(flow, facts, source_topics, stable=stable)
    unavailable = tuple(PartitionFailure(*key, PartitionUnavailable.__name__, why) for key, why in offsets.problems.items())
    begins = (
        flow.copies
        and flow.start != "earliest"
        and not state.begun
        and ((for_a_run and None in first.values()) if request.topics else not concerns)
    )
    return FlowSnapshot(
        selection, source_topics, target_topics, checked, state, claims, unavailable, tuple(denied), lacks, configs, reroute, alike, begins
    )


def lacking_features(flow: Flow, source: Iterable[TopicDescription], target: Iterable[TopicDescription]) -> tuple[Lack, ...]:
    """Features that the flow would use and that the clusters' releases lack. BrokerTooOld if the flow cannot be copied without one."""
    needs, wishes = target_features(transactions=flow.exactly_once)
    of_source = lacking(flow.source, source, needs=SOURCE_NEEDS, wishes=SOURCE_WISHES)
    return of_source + lacking(flow.target, target, needs=needs, wishes=wishes)


def _told(
    flow: Flow, selection: Selection, there: Collection[str], hidden: Iterable[Hidden], copied: Collection[str]
) -> tuple[Selection, list[PartitionFailure]]:
    """With what people want to know of skipped topics, and the topics that the flow names although no flow copies them.

    Skipped are also hidden topics that the flow does not need (heartbeats), and those that it names and the source lacks.
    """
    named, rules, skipped, refused = flow.named_topics if flow.copies else frozenset(), flow.topic_rules, [], []
    for name, reason, expected in selection.skipped:
        if name in named and reason != rules.filter.why_not(name):
            text = f"Ferry never copies it, though topics names it: {reason}; take it out of topics, or write its records to another topic"
            refused.append(PartitionFailure(name, -1, ConfigError.__name__, text))
        else:
            more = ", though topics names it" if name in named else ", but it was copied before" if name in copied else ""
            skipped.append(LeftOut(name, reason + more, bool(more) or expected))
    skipped += [LeftOut(f"topic {entry.name}", entry.problem, None) for entry in hidden if not entry.needed]
    seen = {*there, *(entry.name for entry in hidden)}
    gone = f"copied before, and {flow.source.alias} has no such topic any more"
    skipped += [LeftOut(name, gone) for name in sorted({*copied} - seen - named)]
    others = [topic for topic in there if not is_machinery(topic)]
    lacks = f"{flow.source.alias} has no such topic, though topics names it"
    skipped += [LeftOut(name, lacks + nearest_name(name, others), True) for name in sorted(named - seen)]
    return Selection(selection.selected, tuple(skipped)), refused


def narrow(selection: Selection, request: RunRequest) -> Selection:
    """Only the topics that a request names; ArgumentError for names that the flow does not copy."""
    known = dict(selection.selected)
    unknown = [topic for topic in request.topics if topic not in known]
    if unknown:
        why, unseen = {topic: reason for topic, reason, _ in selection.skipped}, "not at the source, or hidden from the user there"
        told = (f"{topic}: {why.get(topic) or unseen + nearest_name(topic, known)}" for topic in unknown)
        raise ArgumentError(f"flow {request.flow} does not copy topic {'; '.join(told)}")
    return Selection(tuple((topic, known[topic]) for topic in request.topics), selection.skipped)


def _read_positions(
    flow: Flow,
    target_topics: Mapping[str, TopicDescription],
    partitions: Iterable[TopicPartition] | None,
    first: Asked[dict[TopicPartition, int]] | None,
    asked_state: Asked[FlowState] | None,
) -> tuple[FlowState, dict[TopicPartition, int]]:
    """The flow's state, and the positions of its group, by remote partition (of `partitions`; None: of all).

    `first`: positions that were asked for already. `asked_state`: the state, if this process holds the flow. Both are read side by side.
    If it does not, a run may commit between the two reads. So positions that disagree are read again: only a disagreement that stays the
    same counts, and positions that keep changing are left out.
    """
    disagreed: dict[TopicPartition, tuple[int | None, int]] = {}
    for _ in range(LOOKS):
        asked, first = first or ask_positions(flow.target, flow.position_group, partitions, stable=asked_state is not None), None
        state = read_state(flow, target_topics, stable=asked_state is not None, asked=asked_state)
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


def _truncations(flow: Flow, heads: Iterable[Head], ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, Truncation]:
    """Source partitions whose log holds other records before the head's position than were copied; the ledger says what was copied.

    `ends`: last stable offsets. If a log ends at the position, Ferry asks for nothing more. If the head has no epoch, only a log that ends
    before the position is noticed.
    """
    placed = {head.key: head for head in heads}
    asked = {
        key: head
        for key, head in placed.items()
        if (head.source_epoch >= 0 and ends.get(key) != head.position) or ends.get(key, head.position) < head.position
    }
    diverged = diverged_logs(flow.source, {key: ReadTo(head.position, head.source_epoch) for key, head in asked.items()})
    found = {
        key: told if told.proven else told._replace(end=min(told.end, ends.get(key, told.end)))
        for key, told in diverged.items()
        if is_believed(asked[key], told)
    }
    if not found:
        return {}
    of_today = valid_receipts(read_receipts(flow, found), {key: asked[key].topic_ids for key in found})
    return {key: truncation_of(asked[key], divergence, of_today.get(key, ())) for key, divergence in found.items()}


def _explained_ends(  # noqa: PLR0917 - the partitions, and what is known of them
    flow: Flow,
    places: Mapping[TopicPartition, TopicPartition],
    state: FlowState,
    ids: Mapping[str, TopicIds],
    remote_ends: Mapping[TopicPartition, int],
    moving: Collection[str],
) -> dict[TopicPartition, int]:
    """Where the remote records end that receipts explain, of partitions where others may follow: those of a flush that was not recorded.

    Heads that were written without transactions say it. Otherwise the ledger does, for a flow that copies so from now on.
    """
    of_today = {key: head for key, head in state.heads.items() if key in places and head.remote_topic_id == ids[key.topic].remote}
    found = {key: head.remote_end for key, head in of_today.items() if head.remote_end >= 0}
    if flow.exactly_once:
        return found
    for key, place in places.items():
        if key not in of_today:  # what is there before the flow has claimed the topic is not its own
            found[key] = 0 if place.topic in state.claims else remote_ends.get(place, 0)
    asked = {key: ids[key.topic] for key in of_today if key not in found and key.topic in moving}
    receipts = valid_receipts(read_receipts(flow, asked), asked, any_source=True) if asked else {}
    # Behind the last records of a transaction there is its marker.
    ends = {
        key: [max(declared_ends(told)), *(entry.downstream_end + bool(entry.counters.transactions) for entry in told)]
        for key, told in receipts.items()
    }
    return found | {key: max([0, *ends.get(key, [])]) for key in asked}


class _Offsets(NamedTuple):
    starts: Mapping[TopicPartition, int]
    stable_ends: Mapping[TopicPartition, int]
    policy: Mapping[TopicPartition, int]
    until: Mapping[TopicPartition, int]
    since: Mapping[TopicPartition, int]
    problems: Mapping[TopicPartition, str]
    at_rest: Collection[TopicPartition]


def _offsets(  # noqa: PLR0917 - the request, the cluster, and the partitions
    flow: Flow,
    request: RunRequest,
    source: ClusterAdmin,
    wanted: list[TopicPartition],
    state: FlowState,
    known: Mapping[TopicPartition, Head],
    first: Mapping[TopicPartition, int | None],
    *,
    rest: bool,
) -> _Offsets:
    """`first`: as of FlowState.first_offset.

    `rest`: ask for nothing more if a log ends at the position of its `known` head.
    """
    ends, problems = source.end_offsets(wanted)
    positions = {key: known[key].position for key in wanted if key in known}
    _await_lagging(source, ends, positions)
    at_rest = {key: ends[key] for key in wanted if rest and key in ends and ends[key] == positions.get(key)}
    starts, start_problems = source.earliest_offsets([key for key in wanted if key not in at_rest and key not in problems])
    starts |= at_rest
    problems |= start_problems
    usable = [key for key in wanted if key not in problems and key not in at_rest]

    def at_time(moment_ms: int, keys: list[TopicPartition]) -> dict[TopicPartition, int]:
        found, missing = source.offsets_for_time(keys, moment_ms)
        problems.update(missing)
        return {key: ends[key] if offset is None else offset for key, offset in found.items()}

    until = at_time(epoch_milliseconds(request.until), usable) if request.until else {}
    since = at_time(epoch_milliseconds(request.since), usable) if request.since and request.backfill else {}
    begun = {key: offset for key in usable if key not in state.heads and (offset := first[key]) is not None}
    new = [key for key in usable if key not in state.heads and key not in begun]
    policy = starts | {key: min(max(starts[key], offset), ends[key]) for key, offset in begun.items()}
    if flow.start == "latest":
        policy.update({key: ends[key] for key in new})
    elif flow.start != "earliest":
        policy.update(at_time(epoch_milliseconds(flow.start), new))
    return _Offsets(starts, ends, policy, until, since, problems, at_rest.keys())


def _await_lagging(source: ClusterAdmin, ends: dict[TopicPartition, int], positions: Mapping[TopicPartition, int]) -> None:
    """Ask again for LAG_SECONDS if a log seems to end before the position: a new leader may lag behind."""
    begun = time.monotonic()
    while time.monotonic() - begun < LAG_SECONDS:
        behind = [key for key, position in positions.items() if ends.get(key, position) < position]
        if not behind:
            return
        time.sleep(LAG_PAUSE_SECONDS)
        ends.update(source.end_offsets(behind)[0])


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
