"""Group offset sync (KIP-545): a group's translated offsets, committed on the target while it has no members there.

`group_decision.py` has the rules; `group_placing.py` looks, writes and reads back. The commit metadata are the source's own, unless they
may count offsets (translation/commit_metadata.py). The source's leader epoch means nothing on the target, and is left out.
"""

from collections.abc import Collection, Iterable, Mapping

from ferry.config import Flow
from ferry.errors import FerryError, GroupFailed, count_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.recovery_record import why_groups_may_not_be_synced
from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import Change, Measurement, SyncFailure, SyncOutcome
from ferry.syncs.group_decision import GroupDecision, PartitionDecision, Placement
from ferry.syncs.group_placing import GroupPlacer, GroupResult
from ferry.syncs.translated_groups import NO_OFFSETS, TranslatedGroups, translated_groups


def sync_groups(opened: OpenFlow, *, dry_run: bool = False) -> SyncOutcome:
    """Sync every group that the flow's filters accept, unless the flow is failed over: then groups are ahead on the target.

    It raises ClusterUnreachable or a subclass when it can read nothing at all.
    """
    if held := why_groups_may_not_be_synced(opened):
        return SyncOutcome(left_out=held)
    translated = opened.once(translated_groups)
    positions = translated.by_group()
    results: list[GroupResult] = []
    unread: dict[str, FerryError] = {}
    if positions:
        with GroupPlacer(opened.target, to_write=True) as placer:
            for decisions, problems in placer.decide(positions):
                # In a dry run, as if everything that was decided had been written.
                results += map(GroupResult, decisions) if dry_run else placer.write(decisions)
                unread |= problems
    return groups_outcome(opened.flow, translated, results, unread)


def groups_outcome(
    flow: Flow, translated: TranslatedGroups, results: Iterable[GroupResult], unread: Mapping[str, FerryError]
) -> SyncOutcome:
    """The report of the sync (pure). Groups that are held up come first, those that are up to date last: lists may be cut short.

    A group is held up (`held`) if its offsets on the target stay behind those on the source, because nothing of it may be written.
    """
    positions, results = translated.by_group(), list(results)
    skipped, failed = _without_decision(translated, positions, unread)
    held: list[Skipped] = []
    current, synced, up_to_date = [], 0, 0
    for result in results:
        left, broken = _not_written(result)
        waits = _waits(result.decision)
        held += left[:waits]
        skipped += left[waits:]
        failed += broken
        synced += not (left or broken)
        entries = result.decision.partitions
        count = sum(entry.placement is Placement.UP_TO_DATE for entry in entries)
        up_to_date += count
        if count and not result.decision.untouched:
            current.append(Skipped(f"group {result.decision.group}", f"up to date in {count} of {count_of(len(entries), 'partition')}"))
    changes = tuple(_change(entry) for result in results for entry in result.written)
    notices = []
    if not (translated.groups or translated.left_out):
        notices.append(f"{flow.source.alias} has no consumer groups that the user may describe")
    wanted = sum(bool(result.decision.writes) for result in results)
    if wanted and not changes and failed:
        notices.append(f"{count_of(wanted, 'group')} with something to write, and none was written")
    counts = {"groups": len(positions), "partitions": sum(map(len, positions.values())), "up_to_date": up_to_date, "held": len(held)}
    concerned = {*positions, *(entry.group for entry in translated.left_out if entry.error)}
    tags = {"source": flow.source.alias, "target": flow.target.alias}
    measured = (Measurement("groups-synced", synced, tags), Measurement("groups-not-synced", len(concerned) - synced, tags))
    return SyncOutcome(changes, (*held, *skipped, *current), tuple(failed), tuple(notices), counts, measured)


def _without_decision(
    translated: TranslatedGroups, positions: Collection[str], unread: Mapping[str, FerryError]
) -> tuple[list[Skipped], list[SyncFailure]]:
    """Groups that nothing was decided about, and those that could not be read."""
    failed = [SyncFailure(f"group {entry.group}", entry.error, entry.reason) for entry in translated.left_out if entry.error]
    failed += [SyncFailure.of(f"group {group}", why) for group, why in unread.items()]
    skipped = [Skipped(f"group {entry.group}", entry.reason) for entry in translated.left_out if not entry.error]
    return skipped + [Skipped(f"group {group}", NO_OFFSETS) for group in translated.groups if group not in positions], failed


def _waits(decision: GroupDecision) -> bool:
    """Whether offsets on the target stay behind because nothing of the group may be written."""
    return any(entry.untouched and entry.position.upstream_offset is not None for entry in decision.partitions)


def _not_written(result: GroupResult) -> tuple[list[Skipped], list[SyncFailure]]:
    """The parts of a group that were left alone or failed: one entry for the whole group, or one for each partition with its own reason."""
    decision, whole = result.decision, f"group {result.decision.group}"
    left = [Skipped(whole, decision.untouched)] if decision.untouched else []
    left += [Skipped(_name(entry), entry.reason) for entry in decision.partitions if _is_left_alone(entry)]
    unread = [] if decision.untouched else [entry for entry in decision.partitions if entry.position.unread]
    broken = [SyncFailure(_name(entry), GroupFailed.__name__, entry.reason) for entry in unread]
    whys = [(whole, result.whole)] if result.whole is not None else []
    whys += [(_name(entry), result.partitions[entry.remote]) for entry in decision.partitions if entry.remote in result.partitions]
    left += [Skipped(what, why.reason) for what, why in whys if not why.error]
    return left, broken + [SyncFailure(what, why.error, why.reason) for what, why in whys if why.error]


def _is_left_alone(entry: PartitionDecision) -> bool:
    """Whether there is a reason of its own to write nothing for the partition."""
    return entry.placement in {Placement.NONE, Placement.AHEAD} and not entry.untouched and not entry.position.unread


def _change(entry: PartitionDecision) -> Change:
    before = "none" if entry.present is None else str(entry.present)
    after = "" if entry.write is None else str(entry.write.offset)
    return Change(_name(entry), "write", f"{before} -> {after}", entry.reason)


def _name(entry: PartitionDecision) -> str:
    return f"group {entry.position.group}, {entry.where}"
