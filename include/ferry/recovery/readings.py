"""Where the groups are that a failover or failback moves, and whether a cluster answers. Reads only.

A source is unreachable if it does not answer the first request. Any other problem, such as a refused login, is an error: a wrong password
is no reason to use inexact positions. Without the source, the newest checkpoints on the target count. A checkpoint holds the group's own
offset at the source beside its image. So the image is computed again from the ledger of now, and records copied since the checkpoint count.

If topics keep their names, the target's own records may be between the copies. Only a ledger on the source shows which of them the group
had read. Without it the smaller of two images is safe: the new one, or that of the checkpoint, which was made when both clusters answered.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ferry import clock
from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import Flow
from ferry.config.mm2_topics import checkpoints_topic
from ferry.errors import ArgumentError, AuthenticationFailed, ClusterUnreachable, NotAuthorized, RecoveryStopped, count_of
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.recovery_record import Stage, current_record, done_groups, read_recovery, stage_of
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import FlowState, Head
from ferry.policy.naming import is_ferry_group
from ferry.recovery.moving import plan_moves, with_refusals
from ferry.recovery.options import Mode, RecoveryOptions
from ferry.recovery.recovery_report import RecoveryPlan, Stopwatch
from ferry.syncs.checkpoints import newest_checkpoints
from ferry.syncs.group_placing import Positions
from ferry.syncs.mm2_topics import read_mm2_topic
from ferry.syncs.names import SyncName
from ferry.syncs.partition_translators import FoundMap, OffsetMaps, read_offset_maps
from ferry.syncs.translated_groups import NO_OFFSETS, GroupLeftOut, TranslatedGroups, translated_groups, where_no_offset
from ferry.translation.commit_metadata import carried
from ferry.translation.offset_map import OffsetMap
from ferry.translation.translated import Inexact, TranslatedPosition, Translation
from ferry.wire.internal_records import Checkpoint

MARKERS = 1  # a commit marker may follow the last copy


@dataclass(frozen=True)
class GroupReading:
    """Positions by group, groups that are left out and why, and groups that could not be read."""

    positions: Positions
    left_out: tuple[Skipped, ...] = ()
    unread: tuple[str, ...] = ()
    checkpoints_as_of: int | None = None  # (ms) when checkpoints were brought up to date; 0: not known; None: the positions are of none
    notices: tuple[str, ...] = ()

    @property
    def nothing_left(self) -> bool:
        return not self.positions and not self.unread

    def without(self, groups: frozenset[str]) -> "GroupReading":
        """The reading without these groups, which are done."""
        done = tuple(Skipped(f"group {group}", "it was moved already") for group in sorted(groups & set(self.positions)))
        positions = {group: found for group, found in self.positions.items() if group not in groups}
        return replace(self, positions=positions, left_out=(*self.left_out, *done))


def is_away(cluster: OpenCluster) -> str:
    """Why the cluster does not answer; empty when it does. AuthenticationFailed and NotAuthorized are raised."""
    try:
        cluster.require_contact()
    except (AuthenticationFailed, NotAuthorized):
        raise
    except ClusterUnreachable as problem:
        return str(problem)
    return ""


def groups_planned(
    flow: OpenFlow, active: OpenFlow, checked: RecoveryPlan, watch: Stopwatch, *, away: bool = False, back: bool = False
) -> RecoveryPlan:
    """`checked` with what would be written for every group. `active`: the flow in the direction of the groups; others as groups_to_move."""
    with watch.step("translate groups"):
        reading = groups_to_move(flow, checked.options, away=away, back=back)
    with watch.step("look at groups on the other side"):
        moves, unread = plan_moves(active.target, reading.positions, None if away else active.source)
    if checked.options.mode is Mode.REHEARSAL:
        with watch.step("ask for the right to write groups"):
            moves = with_refusals(active.target, moves)
    unread, as_of = (*reading.unread, *unread), reading.checkpoints_as_of
    notices = (*checked.notices, *age_notices(as_of, clock.time()), *reading.notices)
    return replace(checked, moves=moves, unread=unread, left_out=reading.left_out, checkpoints_as_of=as_of, notices=notices)


def groups_to_move(opened: OpenFlow, options: RecoveryOptions, *, away: bool = False, back: bool = False) -> GroupReading:
    """Positions of all groups of the filter on the target; with `back`, those of the target's groups on the source. Without groups that
    this movement has already written. `away`: the source does not answer, so the newest checkpoints count."""
    state = read_recovery(opened, stable=options.writes)
    record = current_record(opened.flow, state)
    begun = stage_of(record) is Stage.FAILING_BACK if back else stage_of(record) is not Stage.REPLICATING
    translated, as_of, notices = checkpointed_groups(opened) if away else (translated_groups(opened, reverse=back), None, ())
    reading = narrowed(translated, options.only, as_of, notices)
    return reading.without(done_groups(state, record)) if begun else reading


def narrowed(found: TranslatedGroups, only: str | None, as_of: int | None, notices: tuple[str, ...]) -> GroupReading:
    """Groups whose whole name `only` matches and that have a position on the other cluster (pure).

    ArgumentError if it matches no group: with a wrong name, nothing would be moved.
    """
    wanted = _pattern(only, found)
    groups = [group for group in found.groups if wanted.fullmatch(group) and not is_ferry_group(group)]
    named = [entry for entry in found.left_out if wanted.fullmatch(entry.group)]
    left_out = [Skipped(f"group {entry.group}", entry.reason) for entry in named if not entry.error]
    unread = tuple(f"group {entry.group}: {entry.error}: {entry.reason}" for entry in named if entry.error)
    # Groups that only read other topics are left out, so that the table shows those that matter.
    known = found.by_group()
    placed = {group: known[group] for group in groups if any(one.translation is not None or one.unread for one in known.get(group, ()))}
    left_out += [Skipped(f"group {group}", _without_place(known.get(group, ()))) for group in groups if group not in placed]
    return GroupReading(placed, tuple(left_out), unread, as_of, notices)


def _pattern(only: str | None, found: TranslatedGroups) -> re.Pattern[str]:
    """`only` as an expression that matches one of the groups, or raises ArgumentError; one that matches all if it is None."""
    wanted = re.compile(".*" if only is None else only, re.DOTALL)
    names = [*found.groups, *(entry.group for entry in found.left_out)]
    if only is not None and not any(map(wanted.fullmatch, names)):
        raise ArgumentError(f"--groups {only!r} matches the whole name of none of {count_of(len(names), 'group')}")
    return wanted


def _without_place(entries: Sequence[TranslatedPosition]) -> str:
    told = f"; the first is {entries[0].topic}-{entries[0].partition}: {entries[0].problem}" if entries else ""
    return f"{NO_OFFSETS}{told}"


def age_notices(checkpoints_as_of: int | None, now: float) -> tuple[str, ...]:
    """How old the positions of checkpoints are (pure). `now` in seconds. A negative age, by a clock that was ahead, counts as not known."""
    if checkpoints_as_of is None:
        return ()
    age = now - checkpoints_as_of / 1000
    if not checkpoints_as_of or age < 0:
        return ("positions are those of the newest checkpoints; how old these are is not known",)
    return (f"positions are those of the checkpoints of {age:,.0f} s ago: groups read again what they have read since then",)


def checkpointed_groups(opened: OpenFlow) -> tuple[TranslatedGroups, int, tuple[str, ...]]:
    """Positions of all groups that have checkpoints and that the group filter accepts; when (ms) checkpoints were last brought up to date,
    0 where that is not known; and notices. RecoveryStopped when there are no checkpoints at all."""
    flow, topic = opened.flow, checkpoints_topic(opened.flow)
    contents = read_mm2_topic(opened, topic, Checkpoint.decode)
    target_topics = opened.target.admin.topics()
    state = opened.ask_anew(stable=True).answer().state
    if not contents.records:
        raise RecoveryStopped(
            f"{flow.source.alias} does not answer, and {place_of(flow.target, topic.name)} holds no checkpoints: where its groups were is "
            "not known; on the target, groups keep the offsets that earlier syncs wrote"
        )
    remote = {key: head.remote_topic for key, head in state.heads.items() if head.remote_topic in target_topics}
    ids = {key: state.heads[key].source_topic_id for key in remote}
    maps = read_offset_maps(opened, remote, ids, target_topics, ask_source=False)
    positions, left_out = positions_of(flow, newest_checkpoints(contents.records).values(), state, maps)
    groups = tuple(sorted({entry.group for entry in positions}))
    done = state.syncs.get(SyncName.CHECKPOINTS.value)
    translated = TranslatedGroups(groups, positions, left_out)
    return translated, 0 if done is None else done.finished, contents.notices()


def positions_of(
    flow: Flow, checkpoints: Iterable[Checkpoint], state: FlowState, maps: OffsetMaps
) -> tuple[tuple[TranslatedPosition, ...], tuple[GroupLeftOut, ...]]:
    """Positions in order of group, topic and partition, and groups that the filter leaves out (pure).

    If the group reads the topic and has no checkpoint for a partition, it goes on from the beginning of the copies there, as it does when
    the source answers. Without a position its consumers would begin by their reset policy, and could skip records.
    """
    accepted = flow.group_filter
    origins = {TopicPartition(head.remote_topic, head.partition): head for head in state.heads.values()}
    found, left_out = [], {}
    for checkpoint in checkpoints:
        reason = accepted.why_not(checkpoint.group)
        if reason is None:
            found.append(_position(checkpoint, origins, maps))
        else:
            left_out[checkpoint.group] = GroupLeftOut(checkpoint.group, reason)
    partitions = grouped(origins)
    for (group, topic), known in grouped(((entry.group, entry.remote_topic), entry.partition) for entry in found).items():
        for partition in set(partitions.get(topic, ())).difference(known):
            begin = _position(Checkpoint(group, topic, partition, 0, 0), origins, maps)
            problem = begin.problem or "the group has no checkpoint there"
            found.append(where_no_offset(flow, replace(begin, upstream_offset=None, problem=problem)))
    found.sort(key=lambda entry: (entry.group, entry.topic, entry.partition))
    return tuple(found), tuple(left_out[group] for group in sorted(left_out))


def _position(checkpoint: Checkpoint, origins: Mapping[TopicPartition, Head], maps: OffsetMaps) -> TranslatedPosition:
    head = origins.get(TopicPartition(checkpoint.topic, checkpoint.partition))
    translation, problem, unread = None, "", False
    if head is None:  # a topic of the target, whose copies the group read; the ledger of these copies is on the source
        translation = Translation(checkpoint.downstream_offset, Inexact.UNEXPLAINED)
    else:
        known, problem, unread = maps.get(head.key, FoundMap(problem=f"the target has no topic {head.remote_topic}"))
        if known is not None:
            translation = checkpoint_image(known, checkpoint, one_name=head.topic == head.remote_topic)
    metadata, translation = carried(checkpoint.metadata, translation, unshifted=False)
    own = head.key if head else TopicPartition(checkpoint.topic, checkpoint.partition)
    offset, kept = checkpoint.upstream_offset, checkpoint.metadata
    return TranslatedPosition(checkpoint.group, *own, checkpoint.topic, offset, translation, metadata, problem, unread, kept)


def checkpoint_image(known: OffsetMap, checkpoint: Checkpoint, *, one_name: bool) -> Translation:
    """Where the group of a checkpoint goes on (pure). `one_name`: the topic has the same name on both sides."""
    fresh = known.translate(checkpoint.upstream_offset)
    own_records = one_name and (
        known.explained_to(checkpoint.downstream_offset) < known.copied_end or known.bounds.target_end > known.copied_end + MARKERS
    )
    if not own_records:
        return fresh
    image = max(min(fresh.image, checkpoint.downstream_offset), known.bounds.target_start)
    return Translation(image, fresh.reason or Inexact.MERGED)
