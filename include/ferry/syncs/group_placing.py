"""Looks at groups on the cluster that is written to, decides about them, writes their offsets, and reads them back.

Group sync, failover, failback, `ferry explain` and the page all use it, so they all decide alike.

It takes some hundred groups at a time, so that little time passes between the look and the write. If a group gets members in this time, the
broker refuses the commit, because that has no member id: a normal outcome, and no failure. If Ferry reads back another offset than it
wrote, and the group is not active, that is a failure that names both offsets. A problem with one group does not stop the others.

One case is not noticed: a consumer that joins, commits and leaves between the look and the write. Kafka has no compare-and-set for group
offsets. That time is a second or less, and ten seconds while a coordinator moves.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from ferry.clusters.groups.consumer_groups import GroupOffsets, Refusals
from ferry.clusters.groups.group_model import GroupDescription
from ferry.clusters.net.error_codes import named
from ferry.clusters.net.error_policy import OFFSET_COMMIT, Action
from ferry.clusters.net.failures import granting
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import Cluster
from ferry.errors import FerryError, GroupFailed, NotAuthorized, ReplicatorActive
from ferry.syncs.group_decision import GroupDecision, PartitionDecision, TargetGroup, decide_group
from ferry.translation.translated import TranslatedPosition

# Groups between one look and its writes: enough for full requests, few enough for the look to be fresh.
GROUPS_AT_ONCE = 200
Positions = Mapping[str, Sequence[TranslatedPosition]]


@dataclass(frozen=True)
class NotWritten:
    """Why an offset was not written, although that was decided. `error`: a class name of ferry.errors; empty for a normal outcome."""

    reason: str
    error: str = ""

    def __str__(self) -> str:
        return f"{self.error}: {self.reason}" if self.error else self.reason


@dataclass(frozen=True)
class GroupResult:
    """The result of a decided group. `whole`: why nothing was written; `partitions`: why offsets of some partitions were not written."""

    decision: GroupDecision
    whole: NotWritten | None = None
    partitions: Mapping[TopicPartition, NotWritten] = field(default_factory=dict)

    @property
    def written(self) -> tuple[PartitionDecision, ...]:
        if self.whole is not None:
            return ()
        return tuple(entry for entry in self.decision.partitions if entry.write is not None and entry.remote not in self.partitions)


class GroupPlacer:
    """Decides about groups of one cluster, and writes them; a context manager. `to_write`: as of ConsumerGroups."""

    def __init__(self, opened: OpenCluster, *, to_write: bool = False) -> None:
        self._opened, self._cluster = opened, opened.cluster
        self._groups = opened.groups(to_write=to_write)

    def __enter__(self) -> Self:
        self._widths = {name: topic.partitions for name, topic in self._opened.admin.topics().items()}
        self._groups.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._groups.__exit__(*details)

    def decide(self, positions: Positions) -> Iterator[tuple[list[GroupDecision], dict[str, FerryError]]]:
        """The decisions of now, for GROUPS_AT_ONCE groups at a time in order of name; and why other groups cannot be read."""
        listed = {entry.group: entry for entry in self._groups.list()}
        names = sorted(positions)
        for start in range(0, len(names), GROUPS_AT_ONCE):
            decisions: list[GroupDecision] = []
            problems: dict[str, FerryError] = {}
            for group, (description, offsets) in self._look(names[start : start + GROUPS_AT_ONCE]).items():
                if isinstance(description, FerryError):
                    problems[group] = description
                elif isinstance(offsets, FerryError):
                    problems[group] = offsets
                else:
                    seen, alias = TargetGroup(description, offsets, listed.get(group)), self._cluster.alias
                    decisions.append(decide_group(group, positions[group], seen, self._widths, alias=alias))
            yield decisions, problems

    def write(self, decisions: Sequence[GroupDecision]) -> list[GroupResult]:
        """Commit what was decided, and read it back. Returns the result of every group, also of those without anything to write."""
        writing = [decision for decision in decisions if decision.writes]
        outcomes = self._groups.commit_all({decision.group: decision.writes for decision in writing}) if writing else {}
        # It does not wait for transactions: the offsets just committed count, and a group that is active by now may have open transactions.
        found = self._groups.offsets([decision.group for decision in writing], stable=False) if writing else {}
        differing = [entry.group for entry in writing if _differs(entry, outcomes[entry.group], found[entry.group])]
        active = _active(self._groups.describe(differing)) if differing else set()
        return [
            self._result(one, outcomes[one.group], found[one.group], active=one.group in active) if one.writes else GroupResult(one)
            for one in decisions
        ]

    def _look(self, groups: Iterable[str]) -> dict[str, tuple[GroupDescription | FerryError, GroupOffsets | FerryError]]:
        """Read each group's state and offsets, or why the cluster does not give them.

        Ferry reads the states first: so if consumers of a group come, commit and go between the two reads, Ferry reads what they committed.
        Ferry does not write an active group, so it does not wait for the offsets of the group's open transactions.
        """
        described = self._groups.describe(groups)
        active = _active(described)
        offsets = {
            **(self._groups.offsets(sorted(active), stable=False) if active else {}),
            **self._groups.offsets([group for group in groups if group not in active]),
        }
        return {group: (described[group], offsets[group]) for group in groups}

    def _result(
        self, decision: GroupDecision, outcome: Refusals | FerryError, back: GroupOffsets | FerryError, *, active: bool
    ) -> GroupResult:
        """The result of one group. `outcome`: the broker's answer. `back`: the offsets read back. `active`: they differ, and it is now."""
        if isinstance(outcome, FerryError) and isinstance(back, FerryError):
            return GroupResult(decision, _failed(outcome))
        if isinstance(outcome, dict) and has_members(outcome):
            refusal = ", ".join(named(code) for code in sorted(set(outcome.values())))
            return GroupResult(
                decision, NotWritten(f"it became active on {self._cluster.alias} meanwhile: the broker refused with {refusal}")
            )
        if isinstance(back, FerryError):
            return GroupResult(decision, _failed(GroupFailed(f"written, but it could not be read back: {back}")))
        whys = ((entry, self._why_not(entry, outcome, back, active=active)) for entry in decision.partitions if entry.write is not None)
        return GroupResult(decision, None, {entry.remote: why for entry, why in whys if why is not None})

    def _why_not(self, entry: PartitionDecision, outcome: Refusals | FerryError, back: GroupOffsets, *, active: bool) -> NotWritten | None:
        """Why one partition was not written, although that was decided; None: it was."""
        alias = self._cluster.alias
        refusal = 0 if isinstance(outcome, FerryError) else outcome.get(entry.remote, 0)
        if refusal and OFFSET_COMMIT.action(refusal) is Action.NOTHING:
            return NotWritten(f"{alias} has no partition {entry.where} any more")
        if refusal:
            return _failed(refused_commit(self._cluster, entry.remote, refusal))
        found = back.get(entry.remote)
        wanted = entry.write.offset if entry.write is not None else None
        if found is not None and found.offset == wanted:
            return None
        if active:
            there = "no offset" if found is None else f"{found.offset}"
            return NotWritten(f"it became active on {alias} meanwhile, which has {there} there now; translated {wanted}")
        if isinstance(outcome, FerryError):
            return _failed(outcome)
        there = "nothing" if found is None else f"{found.offset}"
        what = f"{wanted} was written to {entry.where}, and {there} was read back"
        return _failed(
            GroupFailed(f"cluster {alias}: {what}: somebody else writes this group's offsets, perhaps another sync of this flow")
        )


def end_offsets(cluster: OpenCluster, partitions: Collection[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
    """As of ClusterAdmin; without partitions that have no leader. Asks nobody when there are no partitions."""
    return cluster.admin.end_offsets(partitions, committed=committed)[0] if partitions else {}


def has_members(refusals: Refusals) -> bool:
    """Whether a write was refused because the group has members by now."""
    return bool(refusals) and all(OFFSET_COMMIT.meaning(code).error is ReplicatorActive for code in refusals.values())


def refused_commit(cluster: Cluster, key: TopicPartition, code: int) -> FerryError:
    """Why the cluster did not write the offset of one partition; if a right is missing, how to grant it."""
    if OFFSET_COMMIT.action(code) is Action.DENIED:
        right = granting(cluster, OFFSET_COMMIT.right(code, topic=key.topic))
        return NotAuthorized(f"cluster {cluster.alias} does not allow writing offsets of {key.topic}-{key.partition}; {right}")
    return GroupFailed(f"cluster {cluster.alias} refused {key.topic}-{key.partition}: {OFFSET_COMMIT.told(code)}")


def _active(described: Mapping[str, GroupDescription | FerryError]) -> set[str]:
    return {group for group, entry in described.items() if isinstance(entry, GroupDescription) and entry.active}


def _failed(problem: FerryError) -> NotWritten:
    return NotWritten(str(problem), type(problem).__name__)


def _differs(decision: GroupDecision, outcome: Refusals | FerryError, back: GroupOffsets | FerryError) -> bool:
    if isinstance(back, FerryError):
        return False
    refused = {} if isinstance(outcome, FerryError) else outcome
    return any(key not in refused and (key not in back or back[key].offset != wanted.offset) for key, wanted in decision.writes.items())
