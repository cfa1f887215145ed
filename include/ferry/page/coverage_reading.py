"""Reads what the ledger covers of one topic.

A topic that
the source no longer has, or that the flow no longer copies, is shown as the ledger knows it, with nothing missing.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from ferry.clusters.admin import ClusterAdmin
from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot, take_snapshot
from ferry.errors import ArgumentError
from ferry.ledger.reading import read_receipts
from ferry.ledger.receipts import Receipt
from ferry.ledger.topic_ids import valid_receipts
from ferry.monitoring.status import position_of
from ferry.page.coverage_timeline import MissingRange, PartitionPlace, gaps, missing_document, timeline
from ferry.page.missing_reading import missing_ranges

COMPACTED = "the remote topic is compacted: older records appended behind newer ones would replace them, so Ferry refuses a backfill"


def read_coverage_of(flow: Flow, topic: str) -> dict[str, Any]:
    """The data of `api/coverage`. ArgumentError when neither the source nor the ledger knows the topic; errors of unreachable clusters."""
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        try:
            seen: FlowSnapshot | None = take_snapshot(flow, RunRequest(flow.name, "page", topics=(topic,)), source, target, settled=False)
        except ArgumentError as problem:
            seen, why = None, str(problem)
        if seen is None:
            known = [receipt for receipt in read_receipts(flow) if receipt.topic == topic]
            if not known:
                raise ArgumentError(why)
            return {"remote_topic": known[-1].remote_topic, "partitions": timeline((), known, ()), "missing": [], "note": why}
        today = {(facts.topic, facts.partition): facts.topic_ids for facts in seen.facts}
        receipts = valid_receipts(read_receipts(flow, today), today)
        places = [
            PartitionPlace(facts.partition, facts.log_start, facts.stable_end, position_of(facts), facts.guard.excluded)
            for facts in seen.facts
            if facts.head is not None
        ]
        missing = _missing(flow, source, topic, seen, places, receipts)
    remote = dict(seen.selection.selected).get(topic, "")
    return {
        "remote_topic": remote,
        "partitions": timeline([*places, *_untouched(seen)], chain.from_iterable(receipts.values()), missing),
        "missing": missing_document(missing),
        "note": "",
    }


def _missing(  # noqa: PLR0917 - what was read, piece by piece
    flow: Flow,
    source: ClusterAdmin,
    topic: str,
    seen: FlowSnapshot,
    places: list[PartitionPlace],
    receipts: Mapping[tuple[str, int], list[Receipt]],
) -> list[MissingRange]:
    if flow.policy.is_heartbeats_topic(topic):
        return []  # a backfill leaves heartbeats out
    found = [(place.partition, gap) for place in places for gap in gaps(place, receipts.get((topic, place.partition), ()))]
    obstacle = COMPACTED if any(facts.compacted for facts in seen.facts) else ""
    return missing_ranges(flow, source, topic, found, obstacle)


def _untouched(seen: FlowSnapshot) -> list[PartitionPlace]:
    """Partitions that no run has copied yet. All their records are ahead of the position, so none is missing."""
    return [
        PartitionPlace(facts.partition, facts.log_start, facts.stable_end, position_of(facts)) for facts in seen.facts if facts.head is None
    ]
