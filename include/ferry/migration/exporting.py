"""`ferry export-offsets`: MirrorMaker 2 goes on where Ferry stopped, from records that Ferry writes into MM2's offsets topic.

They are the records that MM2's source connector would have written itself (ferry.wire.connect_offsets), so MM2 needs no other change. MM2
must not run. Its offsets never move back. Ferry first takes the flow's lease: that supersedes a run, and positions cannot move meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ferry.clusters.logs.internal_producer import append_records
from ferry.copying.fencing import RunLease
from ferry.copying.partition_plan import PartitionFacts, PlanRules, plan_partitions
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import rules_of, take_snapshot
from ferry.errors import ClusterUnreachable
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import refuse_newer_state
from ferry.ledger.run_report import Skipped
from ferry.ledger.topics import ensure_internal_topics
from ferry.migration import mm2_positions
from ferry.wire.connect_offsets import SOURCE_CONNECTOR, SourcePartition, encode_source_key, encode_source_offset

EXPORT_VERSION = 1

LastOffsets = Mapping[SourcePartition, "int | None"]


@dataclass(frozen=True)
class OffsetExport:
    """Offsets for MM2's offsets topic, and the partitions that are left out, with the reason. `written`: Ferry has written them."""

    flow: str
    topic: str
    offsets: tuple[tuple[SourcePartition, int], ...]
    left_out: tuple[Skipped, ...] = ()
    written: bool = False

    @property
    def records(self) -> tuple[tuple[bytes, bytes], ...]:
        """Key and value of each, as Connect writes them."""
        return tuple((encode_source_key(where), encode_source_offset(offset)) for where, offset in self.offsets)

    def document(self) -> dict[str, Any]:
        return {
            "version": EXPORT_VERSION,
            "flow": self.flow,
            "topic": self.topic,
            "records": [{"key": key.decode(), "value": value.decode()} for key, value in self.records],
            "left_out": [vars(skipped) for skipped in self.left_out],
            "written": self.written,
        }


def plan_export(
    facts: tuple[PartitionFacts, ...], rules: PlanRules, alias: str, connector: str, last: LastOffsets
) -> tuple[tuple[tuple[SourcePartition, int], ...], tuple[Skipped, ...]]:
    """Offsets to write, and partitions left out (pure). An offset is that of the last copied record; -1: MM2 begins by its own policy."""
    offsets, left_out = [], []
    for plan in plan_partitions(facts, rules):
        where = SourcePartition(connector, alias, plan.facts.topic, plan.facts.partition)
        reason = _why_not(plan.position, plan.facts, last.get(where))
        if plan.failure is not None:
            reason = f"{plan.failure.error}: {plan.failure.problem}"
        if reason:
            left_out.append(Skipped(f"{where.topic}-{where.partition}", reason))
        else:
            offsets.append((where, plan.position - 1))
    return tuple(offsets), tuple(left_out)


def _why_not(position: int, facts: PartitionFacts, mm2: int | None) -> str:
    if facts.head is None:
        return "Ferry has not copied it: MirrorMaker 2 begins where it would without Ferry"
    if mm2 is None or mm2 + 1 < position:
        return ""
    return "MirrorMaker 2 is there already" if mm2 + 1 == position else f"MirrorMaker 2 is at {mm2 + 1}, further than Ferry at {position}"


def export_offsets(
    opened: OpenFlow, request: RunRequest, offsets_topic: str | None = None, connector: str | None = None, *, write: bool = False
) -> OffsetExport:
    """Offsets with which MM2 goes on after Ferry; with `write`, Ferry writes them. ArgumentError, ReplicatorActive, ClusterUnreachable."""
    topic = offsets_topic or mm2_positions.default_offsets_topic(opened.flow)
    if not write:
        return _planned(opened, request, topic, connector, stable=False)
    refuse_newer_state(opened)
    mm2_positions.refuse_workers(opened)
    ensure_internal_topics(opened.flow, opened.target.admin)
    with RunLease(opened) as lease:
        lease.take_lanes()
        planned = _planned(opened, request, topic, connector, stable=True)
        _write(opened, planned)
    return replace(planned, written=True)


def _planned(opened: OpenFlow, request: RunRequest, topic: str, connector: str | None, *, stable: bool) -> OffsetExport:
    flow, seen = opened.flow, take_snapshot(opened, request, stable=stable)
    there = topic in seen.target_topics
    last: LastOffsets = mm2_positions.last_offsets(mm2_positions.read_connect_offsets(opened, topic)) if there else {}
    known = [where for where in last if where.cluster == flow.source.alias]
    name = connector or (mm2_positions.choose_connector(known, flow.source.alias, topic, None) if known else SOURCE_CONNECTOR)
    offsets, left_out = plan_export(seen.facts, rules_of(flow, request), flow.source.alias, name, last)
    return OffsetExport(flow.name, topic, offsets, left_out)


def _write(opened: OpenFlow, planned: OffsetExport) -> None:
    before = mm2_positions.read_connect_offsets(opened, planned.topic)
    mm2_positions.refuse_active_mm2(opened, planned.topic, before.ends, {where for where, _ in planned.offsets})
    append_records(opened.target, {planned.topic: planned.records})
    found = mm2_positions.last_offsets(mm2_positions.read_connect_offsets(opened, planned.topic))
    missing = [where for where, offset in planned.offsets if found.get(where) != (None if offset < 0 else offset)]
    if missing:
        named = ", ".join(f"{where.topic}-{where.partition}" for where in missing)
        raise ClusterUnreachable(
            f"cluster {opened.target.alias}: {planned.topic} does not say what was written for {named}: is MM2 at work?"
        )
