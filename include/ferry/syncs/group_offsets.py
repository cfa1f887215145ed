"""Group offset sync (KIP-545): a group's translated offsets, committed on the target while it has no members there.

Look, decide (group_decision.py), write, read back; for some hundred groups at a time, so that little happens between the look and the
write. What does happen there is the broker's to settle: it refuses a commit without a member id once the group has members, and that is a
normal outcome, not a failure. Read back and found otherwise, without the group being active, is a failure that names both values. One
group's trouble never keeps the others. A consumer that comes, commits and leaves again wholly between look and write is not seen: Kafka has
no compare-and-set for group offsets. That time is a second or less; only a coordinator that moves makes it ten.

Commit metadata: the source's own where the group has some, as MirrorMaker 2 copies it; else `ferry:<version>:<time of the sync>`, so that
an operator sees who wrote an offset, and when. The leader epoch is left out: the source's means nothing on the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from ferry import __version__
from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.consumer_groups import ConsumerGroups
from ferry.clusters.group_model import GroupDescription
from ferry.errors import FerryError
from ferry.ledger.measurement import Measurement
from ferry.ledger.recovery_record import why_groups_are_held
from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import SyncFailure, SyncOutcome
from ferry.policy.naming import is_ferry_group
from ferry.syncs.group_decision import GroupDecision, TargetGroup, decide_group
from ferry.syncs.group_writing import GroupTally, group_change, partition_name, write_decisions
from ferry.syncs.translated_groups import translated_groups
from ferry.translation.model import TranslatedPosition

if TYPE_CHECKING:
    from ferry.config import Flow

# Groups between one look and its writes: enough for full requests, few enough for the look to be fresh.
GROUPS_AT_ONCE = 200
Positions = Mapping[str, Sequence[TranslatedPosition]]


def sync_groups(flow: Flow, dry_run: bool) -> SyncOutcome:
    """Sync every group that the flow's filters accept, unless the flow is failed over: then groups are ahead on the target.

    ClusterUnreachable and its kin when nothing can be read at all.
    """
    if held := why_groups_are_held(flow):
        return SyncOutcome("groups", left_out=held)
    translated = translated_groups(flow)
    tally = GroupTally()
    for entry in translated.left_out:
        if entry.error:
            tally.failed.append(SyncFailure(f"group {entry.group}", entry.error, entry.reason))
        else:
            tally.skipped.append(Skipped(f"group {entry.group}", entry.reason))
    positions = {group: list(found) for group, found in groupby(translated.positions, lambda position: position.group)}
    tally.skipped += [
        Skipped(f"group {group}", "it has no offsets of topics that are copied") for group in translated.groups if group not in positions
    ]
    for group in [group for group in positions if is_ferry_group(group)]:
        tally.skipped.append(Skipped(f"group {group}", "Ferry's own group"))
        del positions[group]
    if positions:
        write_groups(flow, positions, tally, dry_run=dry_run)
    notices = []
    if not (translated.groups or translated.left_out):
        notices.append(f"{flow.source.alias} has no consumer groups that the user may describe")
    if tally.wanted and not tally.changes and tally.failed:
        notices.append(f"none of the {tally.wanted} groups with something to write was written")
    counts = {"groups": len(positions), "partitions": sum(map(len, positions.values())), "up_to_date": tally.up_to_date}
    concerned = {*positions, *(entry.group for entry in translated.left_out if entry.error)}
    unsynced = tally.unsynced(concerned) & concerned
    measured = group_measurements(len(set(positions) - unsynced), len(unsynced), flow.source.alias, flow.target.alias)
    return SyncOutcome(
        "groups", tuple(tally.changes), (*tally.skipped, *tally.current), tuple(tally.failed), tuple(notices), counts, measured
    )


def write_groups(flow: Flow, positions: Positions, tally: GroupTally, *, dry_run: bool) -> None:
    """Bring the target's groups to `positions`, as far as the rules allow."""
    marker = f"ferry:{__version__}:{datetime.now(UTC).isoformat(timespec='seconds')}"
    with ClusterAdmin(flow.target) as admin:
        widths = {name: topic.partitions for name, topic in admin.topics().items()}
    alias = flow.target.alias
    names = sorted(positions)
    with ConsumerGroups(flow.target, to_write=True) as target:
        types = {entry.group: entry.type for entry in target.list()}
        for start in range(0, len(names), GROUPS_AT_ONCE):
            chunk = names[start : start + GROUPS_AT_ONCE]
            decisions = []
            for group, seen in look(target, chunk, types).items():
                if isinstance(seen, FerryError):
                    tally.failure(f"group {group}", seen)
                else:
                    decisions.append(decide_group(group, positions[group], seen, widths, alias=alias, marker=marker))
            for decision in decisions:
                _tell_unwritten(decision, tally)
            writing = [decision for decision in decisions if decision.writes]
            tally.wanted += len(writing)
            if dry_run:
                tally.changes += [group_change(entry) for decision in writing for entry in decision.partitions if entry.write is not None]
            elif writing:
                write_decisions(target, alias, writing, tally)


def look(target: ConsumerGroups, groups: Iterable[str], types: Mapping[str, str]) -> dict[str, TargetGroup | FerryError]:
    """The groups as they are on the target now; what could not be read is that group's error.

    States first, offsets last: whoever came and went in between has left its offsets. An active group is not written, so that offsets of
    its open transactions need not be waited for.
    """
    described = target.describe(groups)
    active = {group for group, entry in described.items() if isinstance(entry, GroupDescription) and entry.active}
    offsets = {
        **(target.offsets(sorted(active), stable=False) if active else {}),
        **target.offsets([group for group in groups if group not in active]),
    }
    found: dict[str, TargetGroup | FerryError] = {}
    for group in groups:
        description, committed = described[group], offsets[group]
        if isinstance(description, FerryError):
            found[group] = description
        elif isinstance(committed, FerryError):
            found[group] = committed
        else:
            found[group] = TargetGroup(description, committed, types.get(group, ""))
    return found


def _tell_unwritten(decision: GroupDecision, tally: GroupTally) -> None:
    """One entry for what concerns the whole group, one for every partition with a reason of its own."""
    current = sum(entry.up_to_date for entry in decision.partitions)
    tally.up_to_date += current
    unwritten = [entry for entry in decision.partitions if entry.write is None and not entry.up_to_date]
    if decision.untouched:
        tally.skipped.append(Skipped(f"group {decision.group}", decision.untouched))
        unwritten = [entry for entry in unwritten if entry.reason != decision.untouched]
    elif current:
        tally.current.append(Skipped(f"group {decision.group}", f"up to date in {current} of {len(decision.partitions)} partitions"))
    tally.skipped += [Skipped(partition_name(entry), entry.reason) for entry in unwritten]


def group_measurements(synced: int, not_synced: int, source: str, target: str) -> tuple[Measurement, ...]:
    """Consumer groups of one sync."""
    tags = {"source": source, "target": target}
    return Measurement("groups-synced", synced, tags), Measurement("groups-not-synced", not_synced, tags)
