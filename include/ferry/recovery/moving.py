"""Plans and carries out the move of groups to another cluster, with the placer of syncs/group_placing.py.

The state topic records that a group is taken before it is written, and that it is done afterwards. These records have a transactional id
that only one recovery of the flow holds. So a try that was killed leaves nothing in doubt: a group that is done is not touched again, one
that may have been written goes back only from its offset of then, and a process that was superseded writes no more groups.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.consumer_groups import ConsumerGroups
from ferry.clusters.group_model import GroupDescription
from ferry.clusters.partitions import TopicPartition
from ferry.config import Cluster
from ferry.errors import FerryError
from ferry.ledger.state import GroupTaken
from ferry.recovery.group_moves import GroupMove, PlaceShown, described_move, unread_partitions, with_consent
from ferry.syncs.group_decision import GroupDecision, Placement
from ferry.syncs.group_placing import GroupPlacer, GroupResult, Positions

# Records which groups are taken, or done.
Take = Callable[[Sequence[GroupTaken]], None]


@dataclass(frozen=True)
class GroupOutcome:
    """What became of a group. `done`: every partition is where it should be, or is left alone for a lasting reason.

    `written`: how many partitions. `problems`: why it is not done: members joined, the broker refused, it could not be read.
    """

    move: GroupMove
    done: bool
    written: int = 0
    problems: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {**self.move.document(), "done": self.done, "written": self.written, "problems": list(self.problems)}


def plan_moves(cluster: Cluster, positions: Positions, origin: Cluster | None) -> tuple[tuple[GroupMove, ...], tuple[str, ...]]:
    """What would become of each group on `cluster`, and groups that cannot be read. Reads only. `origin` None: it does not answer."""
    members = members_of(origin, positions)[0] if origin is not None else {}
    ends = _ends(cluster, positions)
    moves, unread = [], []
    with GroupPlacer(cluster, to_write=True) as placer:
        for decisions, problems in placer.decide(positions):
            moves += [described_move(decision, members.get(decision.group, 0), ends) for decision in decisions]
            unread += [f"group {group}: {type(problem).__name__}: {problem}" for group, problem in problems.items()]
            unread += [f"group {decision.group}, {text}" for decision in decisions for text in unread_partitions(decision)]
    return tuple(moves), tuple(unread)


def move_groups(
    cluster: Cluster, positions: Positions, consent: Collection[PlaceShown], phase: str, take: Take
) -> tuple[GroupOutcome, ...]:
    """Bring the groups of `cluster` to `positions`. A problem with one group does not stop the others; Superseded does."""
    ends = _ends(cluster, positions)
    outcomes: list[GroupOutcome] = []
    with GroupPlacer(cluster, to_write=True) as placer:
        for decided, problems in placer.decide(positions):
            decisions = [with_consent(decision, consent, placer.marker) for decision in decided]
            taken = {entry.group: GroupTaken(entry.group, phase, _back(entry)) for entry in decisions}
            take([taken[entry.group] for entry in decisions if entry.writes])
            found = [outcome_of(result, ends) for result in placer.write(decisions)]
            take([replace(taken[entry.move.group], done=True) for entry in found if entry.done])
            outcomes += found
            for group, problem in problems.items():
                text = f"{type(problem).__name__}: {problem}"
                outcomes.append(GroupOutcome(GroupMove(group, "", ()), done=False, problems=(text,)))
    return tuple(outcomes)


def refused_groups(cluster: Cluster, groups: Iterable[str]) -> tuple[str, ...]:
    """Groups that the user may not write on `cluster`, each with the right to grant; for a rehearsal, which writes nothing."""
    with ConsumerGroups(cluster) as found:
        refused = found.refused(sorted(groups))
    return tuple(f"group {group}: {type(problem).__name__}: {problem}" for group, problem in refused.items())


def members_of(cluster: Cluster, groups: Iterable[str]) -> tuple[dict[str, int], dict[str, str]]:
    """How many members each group has on `cluster`; and why that is not known of other groups."""
    with ConsumerGroups(cluster) as found:
        described = found.describe(sorted(groups))
    counts = {group: len(entry.members) or int(entry.active) for group, entry in described.items() if isinstance(entry, GroupDescription)}
    problems = {group: f"{type(entry).__name__}: {entry}" for group, entry in described.items() if isinstance(entry, FerryError)}
    return counts, problems


def outcome_of(result: GroupResult, ends: Mapping[TopicPartition, int]) -> GroupOutcome:
    """What became of a decided group (pure)."""
    decision = result.decision
    problems = [decision.untouched] if decision.untouched else [str(result.whole)] if result.whole else []
    problems += unread_partitions(decision)
    problems += [f"{entry.where}: {result.partitions[entry.remote]}" for entry in decision.partitions if entry.remote in result.partitions]
    return GroupOutcome(described_move(decision, 0, ends), not problems, len(result.written), tuple(problems))


def _back(decision: GroupDecision) -> tuple[tuple[str, int, int], ...]:
    """As of GroupTaken."""
    return tuple(
        (*entry.remote, entry.present) for entry in decision.partitions if entry.placement is Placement.BACK and entry.present is not None
    )


def _ends(cluster: Cluster, positions: Positions) -> dict[TopicPartition, int]:
    inexact = {
        TopicPartition(entry.remote_topic, entry.partition)
        for found in positions.values()
        for entry in found
        if entry.translation is not None and not entry.translation.exact and entry.remote_topic
    }
    if not inexact:
        return {}
    with ClusterAdmin(cluster) as admin:
        return admin.end_offsets(inexact)[0]
