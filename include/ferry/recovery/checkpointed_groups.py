"""Where groups stood on a source that does not answer: the newest checkpoints on the target, translated again. Reads the target only.

A checkpoint holds the group's own offset at the source beside its image. So the image is computed again from the ledger of now, and what
was copied since the checkpoint counts.

Where names stay as they are, the target's own records may be between the copies. Which of them the group had read is only known from a
ledger on the source. Then the smaller of the two images is safe: the new one, or that of the checkpoint, which was made when both clusters
answered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.partitions import TopicPartition
from ferry.config import Flow
from ferry.errors import RecoveryStopped
from ferry.ledger.formats import place_of
from ferry.ledger.reading import read_own_state
from ferry.ledger.state import FlowState, Head
from ferry.syncs.checkpoints import newest_checkpoints
from ferry.syncs.mm2_topics import read_mm2_topic
from ferry.syncs.names import SyncName
from ferry.syncs.offset_maps import OffsetMaps, read_offset_maps
from ferry.syncs.translated_groups import GroupLeftOut, TranslatedGroups
from ferry.translation.model import Inexact, TranslatedPosition, Translation
from ferry.translation.offset_map import OffsetMap
from ferry.wire.internal_records import Checkpoint

# A commit marker may follow the last copy.
MARKERS = 1


@dataclass(frozen=True)
class CheckpointedGroups:
    """The groups as of their checkpoints. `as_of` (ms): when checkpoints were last brought up to date; None: not known."""

    translated: TranslatedGroups
    as_of: int | None
    notices: tuple[str, ...] = ()


def checkpointed_groups(flow: Flow) -> CheckpointedGroups:
    """Positions of all groups that have checkpoints and that the group filter accepts. RecoveryStopped when there are none at all."""
    topic = flow.policy.checkpoints_topic(flow.source.alias)
    contents = read_mm2_topic(flow.target, topic, Checkpoint.decode)
    with ClusterAdmin(flow.target) as target:
        target_topics = target.topics()
    state = read_own_state(flow, settled=True)
    if not contents.records:
        raise RecoveryStopped(
            f"{flow.source.alias} does not answer, and {place_of(flow.target, topic)} holds no checkpoints: where its groups were is "
            "not known; on the target, groups keep the offsets that earlier syncs wrote"
        )
    remote = {key: head.remote_topic for key, head in state.heads.items() if head.remote_topic in target_topics}
    ids = {key: state.heads[key].source_topic_id for key in remote}
    maps = read_offset_maps(flow, remote, ids, target_topics, ask_source=False)
    positions, left_out = positions_of(flow, newest_checkpoints(contents.records).values(), state, maps)
    groups = tuple(sorted({entry.group for entry in positions}))
    done = state.syncs.get(SyncName.CHECKPOINTS.value)
    translated = TranslatedGroups(flow.name, False, groups, positions, left_out)
    return CheckpointedGroups(translated, None if done is None else done.finished, contents.notices())


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
    read: dict[tuple[str, str], set[int]] = {}
    for checkpoint in checkpoints:
        reason = accepted.why_not(checkpoint.group)
        if reason is None:
            found.append(_position(checkpoint, origins, maps))
            read.setdefault((checkpoint.group, checkpoint.topic), set()).add(checkpoint.partition)
        else:
            left_out[checkpoint.group] = GroupLeftOut(checkpoint.group, reason)
    partitions: dict[str, set[int]] = {}
    for topic, partition in origins:
        partitions.setdefault(topic, set()).add(partition)
    for (group, topic), known in read.items():
        found += [
            _from_the_beginning(group, TopicPartition(topic, partition), origins, maps)
            for partition in partitions.get(topic, set()) - known
        ]
    found.sort(key=lambda entry: (entry.group, entry.topic, entry.partition))
    return tuple(found), tuple(left_out[group] for group in sorted(left_out))


def _position(checkpoint: Checkpoint, origins: Mapping[TopicPartition, Head], maps: OffsetMaps) -> TranslatedPosition:
    head = origins.get(TopicPartition(checkpoint.topic, checkpoint.partition))
    translation, problem, unread = None, "", False
    if head is None:  # a topic of the target, whose copies the group read; the ledger of these copies is on the source
        translation = Translation(checkpoint.upstream_offset, checkpoint.downstream_offset, Inexact.UNEXPLAINED)
    else:
        key = (head.topic, head.partition)
        known = maps.maps.get(key)
        unread = key in maps.unread
        problem = maps.problems.get(key, "" if known else f"the target has no topic {head.remote_topic}")
        if known is not None:
            translation = checkpoint_image(known, checkpoint, one_name=head.topic == head.remote_topic)
    return TranslatedPosition(
        checkpoint.group,
        head.topic if head else checkpoint.topic,
        checkpoint.partition,
        checkpoint.topic,
        checkpoint.upstream_offset,
        translation,
        checkpoint.metadata,
        problem,
        unread,
    )


def _from_the_beginning(group: str, remote: TopicPartition, origins: Mapping[TopicPartition, Head], maps: OffsetMaps) -> TranslatedPosition:
    begin = _position(Checkpoint(group, *remote, 0, 0), origins, maps)
    return replace(begin, upstream_offset=None, problem=begin.problem or "the group has no checkpoint there")


def checkpoint_image(known: OffsetMap, checkpoint: Checkpoint, *, one_name: bool) -> Translation:
    """Where the group of a checkpoint goes on (pure). `one_name`: the topic has the same name on both sides."""
    fresh = known.translate(checkpoint.upstream_offset)
    own_records = one_name and (
        known.explained_to(checkpoint.downstream_offset) < known.copied_end or known.bounds.target_end > known.copied_end + MARKERS
    )
    if not own_records:
        return fresh
    image = max(min(fresh.image, checkpoint.downstream_offset), known.bounds.target_start)
    return Translation(checkpoint.upstream_offset, image, fresh.reason or Inexact.MERGED)
