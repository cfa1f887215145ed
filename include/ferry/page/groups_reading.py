"""Reads all groups of a flow: their state on both sides, and what a sync would do with each now.

group_placing.py decides, as it does for the group sync.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ferry.clusters.groups.group_model import GroupListing, GroupState
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.policy.naming import is_ferry_group
from ferry.syncs.group_decision import GroupDecision, Placement
from ferry.syncs.group_explanation import decision_word, explain_group
from ferry.syncs.group_placing import GroupPlacer, end_offsets
from ferry.syncs.names import SyncName, not_enabled
from ferry.syncs.translated_groups import NO_OFFSETS, translated_groups
from ferry.translation.translated import TranslatedPosition

# Each of a group's 1,000 partitions may have a reason of its own.
REASONS_NAMED = 5

Positions = Sequence[TranslatedPosition]
Listed = Mapping[str, GroupListing]
Ends = Mapping[TopicPartition, int]


def read_groups(flow: Flow) -> dict[str, Any]:
    """`groups`: a row for each group, by name; `off`: why runs do not sync groups (empty: they do)."""
    with open_flow(flow) as opened:
        translated = translated_groups(opened)
        positions = translated.by_group()
        with opened.source.groups() as here:
            listed = {entry.group: entry for entry in here.list()}
        read = {TopicPartition(entry.topic, entry.partition) for entry in translated.positions if entry.upstream_offset is not None}
        ends = end_offsets(opened.source, read)
        rows = {entry.group: _row(entry.group, listed, ends, [entry.reason]) for entry in translated.left_out}
        rows |= {group: _row(group, listed, ends, [NO_OFFSETS]) for group in translated.groups if group not in positions}
        rows |= _decided(opened, positions, listed, ends) if positions else {}
    ordered = [rows[group] for group in sorted(rows) if not is_ferry_group(group)]
    return {"groups": ordered, "off": not_enabled(flow, SyncName.GROUPS)}


def read_group(flow: Flow, group: str) -> dict[str, Any]:
    """The document of `ferry explain`."""
    with open_flow(flow) as opened:
        return asdict(explain_group(opened, group))


def _decided(opened: OpenFlow, positions: Mapping[str, Positions], listed: Listed, ends: Ends) -> dict[str, dict[str, Any]]:
    rows = {}
    with GroupPlacer(opened.target) as placer:
        for decisions, problems in placer.decide(positions):
            for group, problem in problems.items():
                rows[group] = _row(group, listed, ends, [str(problem)], positions[group])
            for decision in decisions:
                group, state = decision.group, decision.target.description.state
                rows[group] = _row(group, listed, ends, _reasons(decision), positions[group], state_target=state)
                # What a sync would do with the whole group.
                words = {decision_word(entry.placement) for entry in decision.partitions}
                rows[group]["decision"] = words.pop() if len(words) == 1 else "mixed"
    return rows


def _row(
    group: str, listed: Listed, ends: Ends, reasons: list[str], positions: Positions = (), *, state_target: str = ""
) -> dict[str, Any]:
    entry = listed.get(group)
    read = ((ends.get(TopicPartition(position.topic, position.partition)), position.upstream_offset) for position in positions)
    lags = (max(0, end - offset) for end, offset in read if end is not None and offset is not None)
    return {
        "group": group,
        "state_source": entry.state if entry else GroupState.DEAD.value,
        "state_target": "" if state_target == GroupState.DEAD else state_target,
        "partitions": len(positions),
        "exact": sum(position.translation is not None and position.translation.exact for position in positions),
        "lag_source": sum(lags),
        "decision": "nothing",
        "reasons": reasons[:REASONS_NAMED],
    }


def _reasons(decision: GroupDecision) -> list[str]:
    """Why partitions are not up to date: each reason once, the most frequent first."""
    left = (entry for entry in decision.partitions if entry.placement is not Placement.UP_TO_DATE and not entry.untouched)
    found = [reason for reason, _ in Counter(entry.reason for entry in left).most_common() if reason]
    return [decision.untouched, *found] if decision.untouched else found
