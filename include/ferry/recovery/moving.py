"""Moving groups: look, decide, say which are taken, write, read back; for some hundred groups at a time.

Before a group is written, the state topic says that it is taken, and behind it, that it is done; under a transactional id that only one
recovery of the flow holds. So a try that was killed leaves nothing in doubt: groups that are done are not touched again, those that it may
have written go back only from where they were then, and a process that was superseded writes no further groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ferry import __version__
from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.consumer_groups import ConsumerGroups
from ferry.clusters.group_model import GroupDescription
from ferry.clusters.partitions import TopicPartition
from ferry.errors import FerryError
from ferry.ledger.recovery_entries import GroupTaken
from ferry.recovery.group_moves import GroupMove, PlaceShown, described_move, is_ahead, unread_partitions, with_consent
from ferry.syncs.group_decision import GroupDecision, decide_group
from ferry.syncs.group_offsets import GROUPS_AT_ONCE, Positions, look
from ferry.syncs.group_writing import GroupTally, partition_name, write_decisions

if TYPE_CHECKING:
    from ferry.config import Cluster

# Says, before they are written, which groups are taken.
Take = Callable[[Sequence[GroupTaken]], None]


@dataclass(frozen=True)
class GroupOutcome:
    """What became of a group: `done` where every partition stands where it should, or is left alone for a reason that stays.

    `problems`: why it is not done: members came, the broker refused, it could not be read.
    """

    move: GroupMove
    done: bool
    written: int = 0
    problems: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {**self.move.document(), "done": self.done, "written": self.written, "problems": list(self.problems)}


def plan_moves(cluster: Cluster, positions: Positions, origin: Cluster | None) -> tuple[tuple[GroupMove, ...], tuple[str, ...]]:
    """What would become of each group on `cluster`, and groups that cannot be read. Reads only. `origin` None: it is away."""
    members = members_of(origin, positions)[0] if origin is not None else {}
    ends = _ends(cluster, positions)
    moves, unread = [], []
    with _Side(cluster) as side:
        for chunk in _chunks(positions):
            decisions, problems = side.decide({group: positions[group] for group in chunk})
            moves += [described_move(decision, members.get(decision.group, 0), ends) for decision in decisions]
            unread += [f"group {group}: {problem}" for group, problem in problems.items()]
            unread += [f"group {decision.group}, {text}" for decision in decisions for text in unread_partitions(decision)]
    return tuple(moves), tuple(unread)


def move_groups(
    cluster: Cluster, positions: Positions, consent: Collection[PlaceShown], phase: str, take: Take
) -> tuple[GroupOutcome, ...]:
    """Bring the groups of `cluster` to `positions`. One group's trouble keeps no other; Superseded ends it between two chunks."""
    ends = _ends(cluster, positions)
    outcomes: list[GroupOutcome] = []
    with _Side(cluster) as side:
        for chunk in _chunks(positions):
            decisions, problems = side.decide({group: positions[group] for group in chunk})
            decisions = [with_consent(decision, consent, side.marker) for decision in decisions]
            taken = {entry.group: GroupTaken(entry.group, phase, _back(entry)) for entry in decisions}
            take([taken[entry.group] for entry in decisions if entry.writes])
            tally = GroupTally()
            writing = [decision for decision in decisions if decision.writes]
            if writing:
                write_decisions(side.groups, cluster.alias, writing, tally)
            found = [outcome_of(decision, tally, ends) for decision in decisions]
            take([replace(taken[entry.move.group], done=True) for entry in found if entry.done])
            outcomes += found
            outcomes += [GroupOutcome(GroupMove(group, "", ()), done=False, problems=(text,)) for group, text in problems.items()]
    return tuple(outcomes)


def refused_groups(cluster: Cluster, groups: Iterable[str]) -> tuple[str, ...]:
    """Groups that the user may not write on `cluster`, each with what to grant; for a rehearsal, which writes nothing."""
    with ConsumerGroups(cluster) as found:
        refused = found.refused(sorted(groups))
    return tuple(f"group {group}: {type(problem).__name__}: {problem}" for group, problem in refused.items())


def members_of(cluster: Cluster, groups: Iterable[str]) -> tuple[dict[str, int], dict[str, str]]:
    """How many members each group has on `cluster`, and why that is not known of others."""
    with ConsumerGroups(cluster) as found:
        described = found.describe(sorted(groups))
    counts = {group: len(entry.members) or int(entry.active) for group, entry in described.items() if isinstance(entry, GroupDescription)}
    problems = {group: f"{type(entry).__name__}: {entry}" for group, entry in described.items() if isinstance(entry, FerryError)}
    return counts, problems


class _Side:
    """The cluster that is written to."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.marker = f"ferry:{__version__}:{datetime.now(UTC).isoformat(timespec='seconds')}"
        self.groups = ConsumerGroups(cluster, to_write=True)

    def __enter__(self) -> _Side:
        with ClusterAdmin(self._cluster) as admin:
            self._widths = {name: topic.partitions for name, topic in admin.topics().items()}
        self.groups.__enter__()
        self._types = {entry.group: entry.type for entry in self.groups.list()}
        return self

    def __exit__(self, *details: object) -> None:
        self.groups.__exit__(*details)

    def decide(self, positions: Positions) -> tuple[list[GroupDecision], dict[str, str]]:
        """By the rules of a sync, and what kept a group from being looked at."""
        decisions, problems = [], {}
        for group, seen in look(self.groups, list(positions), self._types).items():
            if isinstance(seen, FerryError):
                problems[group] = f"{type(seen).__name__}: {seen}"
            else:
                alias = self._cluster.alias
                decisions.append(decide_group(group, positions[group], seen, self._widths, alias=alias, marker=self.marker))
        return decisions, problems


def outcome_of(decision: GroupDecision, tally: GroupTally, ends: Mapping[TopicPartition, int]) -> GroupOutcome:
    """What became of a decided group, by what was written (pure)."""
    written = {change.what for change in tally.changes}
    told = {skipped.what: skipped.reason for skipped in tally.skipped}
    told |= {failure.what: f"{failure.error}: {failure.problem}" for failure in tally.failed}
    whole = f"group {decision.group}"
    problems = [decision.untouched] if decision.untouched else [told[whole]] if whole in told else []
    problems += unread_partitions(decision)
    done = 0
    for entry in decision.partitions:
        name = partition_name(entry)
        if name in written:
            done += 1
        elif entry.write is not None and name in told:
            problems.append(f"{name.removeprefix(whole + ', ')}: {told[name]}")
    return GroupOutcome(described_move(decision, 0, ends), not problems, done, tuple(problems))


def _back(decision: GroupDecision) -> tuple[tuple[str, int, int], ...]:
    return tuple(
        (*entry.remote, entry.present)
        for entry in decision.partitions
        if entry.write is not None and entry.present is not None and is_ahead(entry)
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


def _chunks(positions: Positions) -> Iterable[list[str]]:
    names = sorted(positions)
    return (names[start : start + GROUPS_AT_ONCE] for start in range(0, len(names), GROUPS_AT_ONCE))
