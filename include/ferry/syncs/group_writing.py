"""Writing decided offsets of groups to the target, and what became of each partition.

Written, then read back. The broker's refusal of a group that became active is a normal outcome; a value that reads back otherwise is a
failure that names both, unless the group is active by now.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ferry.clusters.answers import OFFSET_COMMIT, Action
from ferry.clusters.consumer_groups import ConsumerGroups, GroupOffsets, Refusals
from ferry.clusters.error_codes import named
from ferry.clusters.group_model import GroupDescription
from ferry.errors import FerryError, GroupFailed, NotAuthorized, ReplicatorActive
from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import Change, SyncFailure
from ferry.syncs.group_decision import GroupDecision, PartitionDecision


@dataclass
class GroupTally:
    """What a sync has done so far. `wanted`: groups with something to write; `up_to_date`: partitions without.

    `current` names groups that are up to date: they come last, so that a list that is cut short keeps the others.
    """

    changes: list[Change] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    current: list[Skipped] = field(default_factory=list)
    failed: list[SyncFailure] = field(default_factory=list)
    up_to_date: int = 0
    wanted: int = 0

    def failure(self, what: str, problem: FerryError) -> None:
        """Note what could not be done."""
        self.failed.append(SyncFailure(what, type(problem).__name__, str(problem)))

    def unsynced(self, groups: Collection[str]) -> set[str]:
        """Those of `groups` with anything that was left alone or failed, by the names that entries have (partition_name)."""
        found = {what.removeprefix("group ") for what in (*(entry.what for entry in self.skipped), *(entry.what for entry in self.failed))}
        return {name if name in groups else name.rpartition(", ")[0] for name in found}


def write_decisions(target: ConsumerGroups, alias: str, decisions: Sequence[GroupDecision], tally: GroupTally) -> None:
    """Commit what was decided, read it back, and note what became of every partition."""
    outcomes = target.commit_all({decision.group: decision.writes for decision in decisions})
    names = [decision.group for decision in decisions]
    # Without waiting for transactions: what was just committed counts, and a group that is active by now may have some.
    found = target.offsets(names, stable=False)
    differing = [decision for decision in decisions if _differs(decision, outcomes[decision.group], found[decision.group])]
    now = target.describe([decision.group for decision in differing]) if differing else {}
    for decision in decisions:
        outcome, back = outcomes[decision.group], found[decision.group]
        if isinstance(outcome, FerryError) and isinstance(back, FerryError):
            tally.failure(f"group {decision.group}", outcome)
        elif isinstance(outcome, dict) and has_members(outcome):
            refusal = ", ".join(named(code) for code in sorted(set(outcome.values())))
            tally.skipped.append(
                Skipped(f"group {decision.group}", f"it became active on {alias} meanwhile: the broker refused with {refusal}")
            )
        elif isinstance(back, FerryError):
            tally.failure(f"group {decision.group}", GroupFailed(f"written, but it could not be read back: {back}"))
        else:
            for entry in decision.partitions:
                if entry.write is not None:
                    _settle(target, entry, tally, alias=alias, outcome=outcome, back=back, now=now.get(decision.group))


def has_members(refusals: Refusals) -> bool:
    """Whether a write was refused because the group has members by now."""
    return bool(refusals) and all(OFFSET_COMMIT.meaning(code).error is ReplicatorActive for code in refusals.values())


def _settle(
    target: ConsumerGroups,
    entry: PartitionDecision,
    tally: GroupTally,
    *,
    alias: str,
    outcome: Refusals | FerryError,
    back: GroupOffsets,
    now: GroupDescription | FerryError | None,
) -> None:
    """What became of one partition that was to be written."""
    refusal = 0 if isinstance(outcome, FerryError) else outcome.get(entry.remote, 0)
    if refusal:
        _tell_refusal(target, entry, alias, refusal, tally)
        return
    found = back.get(entry.remote)
    wanted = entry.write.offset if entry.write is not None else None
    if found is not None and found.offset == wanted:
        tally.changes.append(group_change(entry))
    elif isinstance(now, GroupDescription) and now.active:
        there = "no offset" if found is None else f"{found.offset}"
        tally.skipped.append(
            Skipped(partition_name(entry), f"it became active on {alias} meanwhile, which has {there} there now; translated {wanted}")
        )
    elif isinstance(outcome, FerryError):
        tally.failure(partition_name(entry), outcome)
    else:
        there = "nothing" if found is None else f"{found.offset}"
        tally.failure(
            partition_name(entry), GroupFailed(f"cluster {alias}: {wanted} was written to {_where(entry)}, and {there} was read back")
        )


def _tell_refusal(target: ConsumerGroups, entry: PartitionDecision, alias: str, refusal: int, tally: GroupTally) -> None:
    action = OFFSET_COMMIT.action(refusal)
    if action is Action.NOTHING:
        tally.skipped.append(Skipped(partition_name(entry), f"{alias} has no partition {_where(entry)} any more"))
    elif action is Action.DENIED:
        right = target.granting(OFFSET_COMMIT.right(refusal, topic=entry.remote.topic))
        problem = NotAuthorized(f"cluster {alias} does not allow writing offsets of {_where(entry)}; {right}")
        tally.failure(partition_name(entry), problem)
    else:
        tally.failure(partition_name(entry), GroupFailed(f"cluster {alias} refused {_where(entry)}: {OFFSET_COMMIT.told(refusal)}"))


def _differs(decision: GroupDecision, outcome: Refusals | FerryError, back: GroupOffsets | FerryError) -> bool:
    if isinstance(back, FerryError):
        return False
    refused = {} if isinstance(outcome, FerryError) else outcome
    return any(key not in refused and (key not in back or back[key].offset != wanted.offset) for key, wanted in decision.writes.items())


def group_change(entry: PartitionDecision) -> Change:
    """What is written, or would be."""
    before = "none" if entry.present is None else str(entry.present)
    after = "" if entry.write is None else str(entry.write.offset)
    return Change(partition_name(entry), "write", f"{before} -> {after}", entry.reason)


def partition_name(entry: PartitionDecision) -> str:
    """A group's partition on the target, for people."""
    return f"group {entry.position.group}, {_where(entry)}"


def _where(entry: PartitionDecision) -> str:
    return f"{entry.position.remote_topic or entry.position.topic}-{entry.position.partition}"
