"""Checkpoints: where each consumer group of the source stands on the target. MM2's clients and a failover read them.

The records are MM2's, in `<source>.checkpoints.internal` on the target. They are written by MM2's rule (MirrorCheckpointTask): the newest
record of the topic for each group and partition counts. A position is written when there is no record, when the group went back at the
source, or when its downstream offset has grown. From the first run on, every partition that a group has an offset for has a checkpoint.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ferry import clock
from ferry.clusters.logs.internal_producer import append_records
from ferry.config import Flow
from ferry.config.mm2_topics import checkpoints_topic
from ferry.errors import GroupFailed
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import Change, Measurement, SyncFailure, SyncOutcome
from ferry.syncs.mm2_topics import PARTITION, ensure_mm2_topic, read_mm2_topic
from ferry.syncs.translated_groups import TranslatedGroups, translated_groups
from ferry.wire.internal_records import Checkpoint

LATENCY = "checkpoint-latency-ms"
CheckpointKey = tuple[str, str, int]  # group, topic as on the target, partition


@dataclass(frozen=True)
class CheckpointPlan:
    """What to write. `due`: new checkpoints, each with the one before it (None: there is none). `unchanged`: how many need no new one."""

    due: tuple[tuple[Checkpoint, Checkpoint | None], ...]
    unchanged: int
    skipped: tuple[Skipped, ...]
    failed: tuple[SyncFailure, ...] = ()


def sync_checkpoints(opened: OpenFlow, *, dry_run: bool = False) -> SyncOutcome:
    """Write the checkpoints that are due. NotAuthorized or ClusterUnreachable when topic, ledger or groups cannot be read."""
    flow = opened.flow
    topic = checkpoints_topic(flow)
    contents = read_mm2_topic(opened, topic, Checkpoint.decode)
    queried = clock.time_ms()
    groups = opened.once(translated_groups)
    plan = plan_checkpoints(groups, newest_checkpoints(contents.records))
    changes = ensure_mm2_topic(opened, topic, dry_run=dry_run)
    measured: tuple[Measurement, ...] = ()
    if plan.due and not dry_run:
        records = [(checkpoint.encode_key(), checkpoint.encode_value()) for checkpoint, _ in plan.due]
        append_records(opened.target, {topic.name: records}, partition=PARTITION, timestamp=queried)
        measured = _latencies(flow, plan, clock.time_ms() - queried)
    changes += tuple(_change(checkpoint, before) for checkpoint, before in plan.due)
    left_out = [Skipped(f"group {entry.group}", entry.reason) for entry in groups.left_out if not entry.error]
    failed = plan.failed + tuple(SyncFailure(f"group {entry.group}", entry.error, entry.reason) for entry in groups.left_out if entry.error)
    counts = {"groups": len(groups.groups), "written": len(plan.due), "unchanged": plan.unchanged}
    return SyncOutcome(changes, (*left_out, *plan.skipped), failed, contents.notices(), counts, measured)


def plan_checkpoints(groups: TranslatedGroups, previous: Mapping[CheckpointKey, Checkpoint]) -> CheckpointPlan:
    """Which positions to write (pure)."""
    due: list[tuple[Checkpoint, Checkpoint | None]] = []
    skipped, failed = list[Skipped](), list[SyncFailure]()
    unchanged = 0
    for position in groups.positions:
        what = f"group {position.group}, {position.topic}-{position.partition}"
        if position.upstream_offset is None or position.translation is None:
            if position.unread:
                failed.append(SyncFailure(what, GroupFailed.__name__, position.problem))
            else:
                skipped.append(Skipped(what, position.problem or "the group has no offset there"))
            continue
        image, exact = position.translation.image, position.translation.exact
        now = Checkpoint(position.group, position.remote_topic, position.partition, position.upstream_offset, image, position.metadata)
        before = previous.get(checkpoint_key(now))
        if is_due(now, before):
            due.append((now, before))
            continue
        unchanged += 1
        if exact and before is not None and before.downstream_offset > image:
            larger = f"the last checkpoint ({before.downstream_offset}) is larger than the translated offset ({image})"
            skipped.append(Skipped(what, f"{larger}; by MM2's rule it stays until the group has passed it"))
    return CheckpointPlan(tuple(due), unchanged, tuple(skipped), tuple(failed))


def is_due(now: Checkpoint, before: Checkpoint | None) -> bool:
    moved = before is None or now.upstream_offset < before.upstream_offset or now.downstream_offset > before.downstream_offset
    return moved or _without_metadata(now, before)


def _without_metadata(now: Checkpoint, before: Checkpoint | None) -> bool:
    """Whether only one thing has changed: metadata are left out now. Without a new checkpoint MM2's clients would commit the old ones."""
    return before is not None and not now.metadata and before != now == replace(before, metadata="")


def checkpoint_key(checkpoint: Checkpoint) -> CheckpointKey:
    return checkpoint.group, checkpoint.topic, checkpoint.partition


def newest_checkpoints(checkpoints: Iterable[Checkpoint]) -> dict[CheckpointKey, Checkpoint]:
    """The last checkpoint of each key. `checkpoints`: in log order."""
    return {checkpoint_key(entry): entry for entry in checkpoints}


def _latencies(flow: Flow, plan: CheckpointPlan, milliseconds: int) -> tuple[Measurement, ...]:
    """MM2's checkpoint-latency-ms of each checkpoint that was written: they were all acknowledged together, and each of them once."""
    aliases = {"source": flow.source.alias, "target": flow.target.alias}
    tags = [{**aliases, "group": one.group, "topic": one.topic, "partition": str(one.partition)} for one, _ in plan.due]
    return tuple(Measurement(f"{LATENCY}{name}", milliseconds, one) for one in tags for name in ("", "-min", "-max", "-avg"))


def _change(now: Checkpoint, before: Checkpoint | None) -> Change:
    pair = f"upstream {now.upstream_offset}, downstream {now.downstream_offset}"
    detail = pair if before is None else f"upstream {before.upstream_offset}, downstream {before.downstream_offset} -> {pair}"
    reason = "first" if before is None else "rewound at the source" if now.upstream_offset < before.upstream_offset else "moved on"
    if _without_metadata(now, before):
        reason = "without commit metadata, which may count offsets"
    return Change(f"checkpoint of group {now.group}, {now.topic}-{now.partition}", "write", detail, reason)
