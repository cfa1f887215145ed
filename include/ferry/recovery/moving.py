"""The offsets that a failover, failback or cut-over writes for each group: plans and writes them, with syncs/group_placing.py.

The rules are those of the group sync (syncs/group_decision.py) with one more. If the target's offset of a partition is larger than the
translated one, the partition goes back if a person has confirmed it, and only from the offset that this person was shown. A group that has
moved since is not touched. A group with members is never written.

The state topic records (keeper.py) that a group is taken before it is written, and that it is done afterwards. So a try that was killed
leaves nothing in doubt: a group that is done is not touched again; one that may have been written goes back only from its offset of then.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ferry.clusters.groups.group_model import CommittedOffset, GroupDescription
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import OpenCluster
from ferry.errors import FerryError
from ferry.ledger.state import GroupTaken
from ferry.syncs.group_decision import GroupDecision, PartitionDecision, Placement
from ferry.syncs.group_placing import GroupPlacer, GroupResult, Positions, end_offsets

# Group, topic and partition on the cluster that is written to; the offset there that a person was shown.
PlaceShown = tuple[str, str, int, int]
Take = Callable[[Sequence[GroupTaken]], None]  # records which groups are taken, or done


@dataclass(frozen=True)
class PartitionMove:
    """One partition of a group that moves."""

    topic: str
    partition: int
    remote_topic: str
    offset: int | None  # the group's own, on the cluster that it leaves
    present: int | None  # its offset now, on the other cluster
    wanted: int | None  # where it goes on, on the other cluster
    action: Placement
    exact: bool
    re_reads: int | None  # how many offsets it reads again at most; 0 if the translation is exact; None: not known
    reason: str  # why nothing is written, or why the translation is not exact


@dataclass(frozen=True)
class GroupMove:
    """One group. `obstacle`: why it cannot be written now. `members_at_origin`: how many members it has on the cluster that it leaves."""

    group: str
    obstacle: str
    partitions: tuple[PartitionMove, ...]
    members_at_origin: int = 0

    @property
    def exact(self) -> bool:
        """Whether every partition goes on exactly at the record that the group would have read next."""
        return all(entry.exact for entry in self.partitions if entry.action is not Placement.NONE)

    @property
    def writes(self) -> bool:
        """Whether a partition of it would be written, without anybody's consent."""
        return not self.obstacle and any(entry.action is Placement.WRITE for entry in self.partitions)

    @property
    def ahead(self) -> tuple[PlaceShown, ...]:
        """The partitions whose offset is larger than the translated one. They go back only if a person confirms it."""
        found = (entry for entry in self.partitions if entry.action in {Placement.AHEAD, Placement.BACK})
        return tuple((self.group, one.remote_topic, one.partition, one.present) for one in found if one.present is not None)

    def document(self) -> dict[str, Any]:
        partitions = [{**vars(entry), "action": entry.action.value} for entry in self.partitions]
        return {**vars(self), "exact": self.exact, "partitions": partitions}


def described_move(decision: GroupDecision, origin_members: int, ends: Mapping[TopicPartition, int]) -> GroupMove:
    """A decision as people and reports see it. `ends`: of the partitions that are written to, for `re_reads`."""
    partitions = tuple(_move(entry, ends) for entry in decision.partitions)
    return GroupMove(decision.group, decision.untouched, partitions, origin_members)


def with_consent(decision: GroupDecision, consent: Collection[PlaceShown]) -> GroupDecision:
    """The decision, but the partitions of `consent` go back if they are still at the offset that a person was shown."""
    agreed, partitions = set(consent), []
    for entry in decision.partitions:
        translation, place = entry.position.translation, (decision.group, *entry.remote, entry.present)
        if entry.placement is Placement.AHEAD and translation is not None and place in agreed:
            back = CommittedOffset(translation.image, -1, entry.position.metadata)
            partitions.append(replace(entry, placement=Placement.BACK, write=back))
        else:
            partitions.append(entry)
    return replace(decision, partitions=tuple(partitions))


def without_taken(consent: Iterable[PlaceShown], taken: Mapping[str, GroupTaken], phase: str) -> frozenset[PlaceShown]:
    """The part of `consent` that still holds. A group that an earlier try may have written goes back only from its offset of then."""
    before = {group: entry.back for group, entry in taken.items() if entry.phase == phase}
    return frozenset(place for place in consent if place[0] not in before or place[1:] in before[place[0]])


def unread_partitions(decision: GroupDecision) -> list[str]:
    """Partitions without a position because a cluster did not answer, and why. Consumers there could skip records."""
    return [f"{entry.where}: {entry.position.problem}" for entry in decision.partitions if entry.position.unread]


def _move(entry: PartitionDecision, ends: Mapping[TopicPartition, int]) -> PartitionMove:
    position, translation = entry.position, entry.position.translation
    exact = translation is not None and translation.exact
    return PartitionMove(
        topic=position.topic,
        partition=position.partition,
        remote_topic=position.remote_topic,
        offset=position.upstream_offset,
        present=entry.present,
        wanted=None if translation is None else translation.image,
        action=entry.placement,
        exact=exact,
        re_reads=_re_reads(entry, ends, exact=exact),
        reason=entry.reason,
    )


def _re_reads(entry: PartitionDecision, ends: Mapping[TopicPartition, int], *, exact: bool) -> int | None:
    """How many of the offsets from the position on the group has read before, at most."""
    translation = entry.position.translation
    if translation is None or entry.position.upstream_offset is None:
        return None
    if exact:
        return 0
    end = ends.get(entry.remote)
    return None if end is None else max(0, end - translation.image) + translation.ahead


@dataclass(frozen=True)
class GroupOutcome:
    """The result of a group."""

    move: GroupMove
    done: bool  # every partition is where it should be, or is left alone for a lasting reason
    written: int = 0  # how many partitions were written
    problems: tuple[str, ...] = ()  # why it is not done: members joined, the broker refused, it could not be read

    def document(self) -> dict[str, Any]:
        return {**self.move.document(), "done": self.done, "written": self.written, "problems": list(self.problems)}


def plan_moves(cluster: OpenCluster, positions: Positions, origin: OpenCluster | None) -> tuple[tuple[GroupMove, ...], tuple[str, ...]]:
    """The planned moves of groups on `cluster`, and groups that cannot be read. Reads only. `origin` None: it does not answer."""
    members = members_of(origin, positions)[0] if origin is not None else {}
    ends = _ends(cluster, positions)
    moves, unread = [], []
    with GroupPlacer(cluster, to_write=True) as placer:
        for decisions, problems in placer.decide(positions):
            moves += [described_move(decision, members.get(decision.group, 0), ends) for decision in decisions]
            unread += [f"group {group}: {problem.named}" for group, problem in problems.items()]
            unread += [f"group {decision.group}, {text}" for decision in decisions for text in unread_partitions(decision)]
    return tuple(moves), tuple(unread)


def move_groups(
    cluster: OpenCluster, positions: Positions, consent: Collection[PlaceShown], phase: str, take: Take
) -> tuple[GroupOutcome, ...]:
    """Bring the groups of `cluster` to `positions`. A problem with one group does not stop the others; Superseded does."""
    ends = _ends(cluster, positions)
    outcomes: list[GroupOutcome] = []
    with GroupPlacer(cluster, to_write=True) as placer:
        for decided, problems in placer.decide(positions):
            decisions = [with_consent(decision, consent) for decision in decided]
            taken = {entry.group: GroupTaken(entry.group, phase, _gone_back(entry)) for entry in decisions}
            take([taken[entry.group] for entry in decisions if entry.writes])
            found = [outcome_of(result, ends) for result in placer.write(decisions)]
            take([replace(taken[entry.move.group], done=True) for entry in found if entry.done])
            outcomes += found
            for group, problem in problems.items():
                outcomes.append(GroupOutcome(GroupMove(group, "", ()), done=False, problems=(problem.named,)))
    return tuple(outcomes)


def with_refusals(cluster: OpenCluster, moves: Iterable[GroupMove]) -> tuple[GroupMove, ...]:
    """The moves, with the right to grant where the user may not write the group on `cluster`; for a rehearsal, which writes nothing."""
    moves = tuple(moves)
    with cluster.groups() as found:
        refused = found.refused(sorted(move.group for move in moves))
    return tuple(replace(move, obstacle=move.obstacle or refused[move.group].named) if move.group in refused else move for move in moves)


def members_of(cluster: OpenCluster, groups: Iterable[str]) -> tuple[dict[str, int], dict[str, str]]:
    """How many members each group has on `cluster`; and why that is not known of other groups."""
    with cluster.groups() as found:
        described = found.describe(sorted(groups))
    counts = {group: len(entry.members) or int(entry.active) for group, entry in described.items() if isinstance(entry, GroupDescription)}
    problems = {group: entry.named for group, entry in described.items() if isinstance(entry, FerryError)}
    return counts, problems


def outcome_of(result: GroupResult, ends: Mapping[TopicPartition, int]) -> GroupOutcome:
    decision = result.decision
    problems = [decision.untouched] if decision.untouched else [str(result.whole)] if result.whole else []
    problems += unread_partitions(decision)
    problems += [f"{entry.where}: {result.partitions[entry.remote]}" for entry in decision.partitions if entry.remote in result.partitions]
    return GroupOutcome(described_move(decision, 0, ends), not problems, len(result.written), tuple(problems))


def _gone_back(decision: GroupDecision) -> tuple[tuple[str, int, int], ...]:
    """The partitions that go back: (topic, partition, offset before)."""
    return tuple(
        (*entry.remote, entry.present) for entry in decision.partitions if entry.placement is Placement.BACK and entry.present is not None
    )


def _ends(cluster: OpenCluster, positions: Positions) -> dict[TopicPartition, int]:
    entries = (entry for found in positions.values() for entry in found if entry.translation is not None and not entry.translation.exact)
    return end_offsets(cluster, {TopicPartition(entry.remote_topic, entry.partition) for entry in entries if entry.remote_topic})
