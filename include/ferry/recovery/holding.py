"""Whether a flow's group sync must leave groups alone: after a failover positions at the source are older than those on the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.recovery.records import current_record, read_recovery, stage_of
from ferry.recovery.stages import Stage, groups_are_moving

if TYPE_CHECKING:
    from ferry.config import Flow

_SINCE = {
    Stage.FAILING_OVER: "failing over since",
    Stage.FAILED_OVER: "failed over at",
    Stage.CUTTING_OVER: "cutting over since",
    Stage.CUT_OVER: "cut over at",
    Stage.FAILING_BACK: "failing back; failed over at",
}


def why_groups_are_held(flow: Flow) -> str:
    """Why no group may be synced now; empty when they may. Waits for what is being committed: an answer of before would be wrong."""
    from ferry.recovery.report import iso  # noqa: PLC0415 - it knows of groups, whose sync asks here

    record = current_record(flow, read_recovery(flow))
    stage = stage_of(record)
    if not groups_are_moving(stage):
        return ""
    return f"{flow.name} is {_SINCE[stage]} {iso(record.since)} ({record.recovery}): its groups are at {flow.target.alias} and go on there"
