"""Reads the facts for the plan of a verify, from both clusters and the ledger.

The order of the reads makes it sound: first the last stable offsets of the remote partitions, then the ledger to its end, then the source's
last stable offsets and the starts of both logs. So the ledger explains every record below the target's offsets. High watermarks of the
remote partitions are read after the ledger: an offset in the ledger is below them, unless the log was truncated.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ferry.clusters.admin.cluster_admin import Offsets
from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.copying.guard_reading import guarded
from ferry.copying.partition_plan import PartitionFacts, other_remote
from ferry.copying.request import RunRequest, epoch_milliseconds
from ferry.copying.snapshot import FlowSnapshot, take_snapshot
from ferry.errors import ArgumentError, LogChanged, PartitionUnavailable, PositionDisagrees, TargetRecreated
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import read_receipts
from ferry.ledger.receipts import Receipt
from ferry.ledger.run_report import PartitionFailure
from ferry.ledger.topic_ids import valid_receipts
from ferry.verify import reasons
from ferry.verify.comparison import NotCovered, PartitionEvidence
from ferry.verify.request import VerifyRequest
from ferry.wire.runs import DOWNSTREAM, end_of

NOT_SELECTED = "in the ledger, but the flow does not copy it today: the topic was deleted at the source, or a filter leaves it out"


@dataclass(frozen=True)
class FlowEvidence:
    partitions: tuple[PartitionEvidence, ...]  # those that can be compared
    not_covered: tuple[NotCovered, ...]  # those that cannot be compared
    failed: tuple[PartitionFailure, ...]  # those that could not be read


def read_evidence(opened: OpenFlow, request: VerifyRequest) -> FlowEvidence:
    """The facts of now. ArgumentError for topics and partitions that the flow does not copy; errors of unreachable clusters."""
    opened.anew()
    flow, target = opened.flow, opened.target.admin
    seen = take_snapshot(opened, RunRequest(flow.name, request.run_id, topics=request.topics), stable=False)
    wanted = _asked(seen, request)
    facts, broken = _unbroken(wanted)
    there = [entry for entry in facts if entry.has_remote]
    target_bounds = target.end_offsets(entry.remote for entry in there)
    narrow = bool(request.topics or request.partitions)
    # Receipts of an older source topic count: they explain records that are still in the remote topic.
    today = {entry.key: entry.topic_ids for entry in there}
    every = read_receipts(opened, today if narrow else None)
    receipts = valid_receipts(every, today, any_source=True)
    broken += _truncated(there, receipts, target.end_offsets((entry.remote for entry in there), committed=False)[0])
    partitions, problems = _comparable(opened, there, seen, request, receipts, target_bounds=target_bounds)
    left = [] if narrow else _left(every, {entry.key for entry in wanted})
    absent = [
        NotCovered(*entry.key, entry.log_start, entry.stable_end, reasons.NO_REMOTE_TOPIC)
        for entry in facts
        if not entry.has_remote and entry.stable_end > entry.log_start
    ]
    failed = [*seen.denied, *broken, *(PartitionFailure(*key, PartitionUnavailable.__name__, text) for key, text in problems.items())]
    return FlowEvidence(partitions, (*absent, *left), (*failed, *seen.unavailable))


def _asked(seen: FlowSnapshot, request: VerifyRequest) -> list[PartitionFacts]:
    facts = [entry for entry in seen.facts if not request.partitions or entry.partition in request.partitions]
    unknown = set(request.partitions) - {entry.partition for entry in facts} - {failure.partition for failure in seen.unavailable}
    if unknown:
        named = ", ".join(str(number) for number in sorted(unknown))
        raise ArgumentError(f"flow {request.flow}: no topic that was asked for has partition {named}")
    return facts


def _unbroken(wanted: Collection[PartitionFacts]) -> tuple[list[PartitionFacts], list[PartitionFailure]]:
    """The partitions that can still be compared, and why the others cannot."""
    broken = {entry.key: failure for entry in wanted if (failure := _broken(entry)) is not None}
    return [entry for entry in wanted if entry.key not in broken], list(broken.values())


def _broken(entry: PartitionFacts) -> PartitionFailure | None:
    """The failure of a partition that cannot be compared, because its copies or its ledger were deleted. None: neither was."""
    head = entry.head
    if head is None:
        return None
    if head.topic_ids.remote != entry.topic_ids.remote:
        problem = f"the copies cannot be compared: {other_remote(entry, head)}"
        return PartitionFailure(*entry.key, TargetRecreated.__name__, problem)
    if head.ledger_topic_id != entry.ledger_topic_id:
        problem = f"the ledger of the records up to offset {head.position} was deleted: nothing says what is on the target"
        return PartitionFailure(*entry.key, PositionDisagrees.__name__, problem)
    return None


def _truncated(
    facts: Iterable[PartitionFacts], receipts: Mapping[TopicPartition, list[Receipt]], ends: Mapping[TopicPartition, int]
) -> list[PartitionFailure]:
    """Partitions whose remote log ends before an offset in the ledger. `ends`: high watermarks, read after the ledger."""
    found = []
    for entry in facts:
        reached = max((end_of(one.runs, DOWNSTREAM) for one in receipts.get(entry.key, ()) if one.runs), default=0)
        end = ends.get(entry.remote, reached)
        if end < reached:
            text = f"remote topic {entry.remote_topic} ends at offset {end}, but the ledger names offsets up to {reached}: it was truncated"
            found.append(PartitionFailure(*entry.key, LogChanged.__name__, text))
    return found


def _comparable(
    opened: OpenFlow,
    facts: Sequence[PartitionFacts],
    seen: FlowSnapshot,
    request: VerifyRequest,
    receipts: Mapping[TopicPartition, list[Receipt]],
    *,
    target_bounds: Offsets,
) -> tuple[tuple[PartitionEvidence, ...], dict[TopicPartition, str]]:
    """The evidence of partitions, and why others cannot be compared. `target_bounds`: ends of the remote logs, and problems with them."""
    flow, source, target = opened.flow, opened.source.admin, opened.target.admin
    keys = {entry.key: entry.remote for entry in facts}
    source_ends, end_problems = source.end_offsets(keys)
    source_starts, start_problems = source.earliest_offsets(keys)
    target_starts, remote_problems = target.earliest_offsets(keys.values())
    target_ends, target_problems = target_bounds
    problems = {**end_problems, **start_problems}

    def at_time(moment: datetime | None) -> dict[TopicPartition, int]:
        if moment is None:
            return {}
        found, missing = source.offsets_for_time(keys, epoch_milliseconds(moment))
        problems.update(missing)
        return {key: source_ends.get(key, 0) if offset is None else offset for key, offset in found.items()}

    remote_problems |= target_problems
    problems |= {entry.key: remote_problems[entry.remote] for entry in facts if entry.remote in remote_problems}
    since, until = at_time(request.since), at_time(request.until)
    # Partitions whose receipts left out what the flow in the other direction wrote to the source.
    touched = [
        replace(entry, since=entry.log_start) for entry in facts if any(one.counters.from_target for one in receipts.get(entry.key, ()))
    ]
    guards = guarded(opened, touched, seen.source_topics, stable=False) if touched else ()
    excluded = {entry.key: entry.guard.excluded for entry in guards}
    return tuple(
        PartitionEvidence(
            *entry.existing,
            source_start=source_starts[key],
            source_end=source_ends[key],
            target_start=target_starts[entry.remote],
            target_end=target_ends[entry.remote],
            receipts=tuple(receipts.get(entry.key, ())),
            position=entry.head.position if entry.head is not None and entry.head.topic_ids == entry.topic_ids else -1,
            excluded=excluded.get(entry.key, ()),
            local=entry.remote_topic == entry.topic and entry.may_be_local(flow.on_unexplained),
            exactly_once=seen.state.flow is None or seen.state.flow.exactly_once,
            since=since.get(key),
            until=until.get(key),
        )
        for key, entry in zip(keys, facts, strict=True)
        if entry.key not in problems
    ), problems


def _left(receipts: Iterable[Receipt], known: Collection[TopicPartition]) -> list[NotCovered]:
    """The copied ranges of partitions that the flow does not copy today: all but the `known`."""
    return [
        NotCovered(*key, min(entry.upstream_start for entry in found), max(entry.upstream_end for entry in found), NOT_SELECTED)
        for key, found in sorted(grouped((receipt.key, receipt) for receipt in receipts).items())
        if key not in known
    ]
