"""Reads the ranges of one topic that the ledger covers, the gaps that hold records, and the times of these records. Bounded in time.

A topic that the source no longer has, or that the flow no longer copies, is shown as the ledger knows it, with nothing missing.

For each gap Ferry reads the first committed record. A gap without one holds only control records and holes of compaction, so nothing is
missing there. A missing range begins at its first record, because a run by time cannot begin in a hole.

A run with the interval [from, until) begins at the first offset whose record is at or after `from`, and ends before the first one at or
after `until` (Kafka's offsetsForTimes). So `from` is the time of the range's first record. `until` is the earliest time whose first offset
is the end of the range or a later one. Record times need not be in order, but a later time never gives an earlier offset: so doubling
steps and then bisection find `until`.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import take_snapshot
from ferry.errors import ArgumentError
from ferry.ledger.open_flow import open_flow
from ferry.ledger.reading import read_receipts
from ferry.ledger.topic_ids import valid_receipts
from ferry.monitoring.missing import COMPACTED, LAST_MOMENT, NO_TIME
from ferry.monitoring.missing_reading import GAPS_LOOKED_AT, Gap, first_records
from ferry.page.coverage_timeline import MissingRange, gaps, timeline

# For all gaps of a topic together; the page shows the rest without times.
LOOK_SECONDS = 20.0
NOT_LOOKED_AT = "Ferry did not look up its times: there are too many missing ranges, or the source is slow"

# Offset of the first record at or after a time in ms; None: there is none.
OffsetAt = Callable[[int], int | None]


def read_coverage_of(flow: Flow, topic: str) -> dict[str, Any]:
    """The data of `api/coverage`. ArgumentError when neither the source nor the ledger knows the topic; errors of unreachable clusters."""
    with open_flow(flow) as opened:
        try:
            seen = take_snapshot(opened, RunRequest(flow.name, "page", topics=(topic,)), stable=False)
        except ArgumentError as problem:
            known = [receipt for receipt in read_receipts(opened) if receipt.topic == topic]
            if not known:
                raise
            return {"remote_topic": known[-1].remote_topic, "partitions": timeline((), known, ()), "missing": [], "note": str(problem)}
        today = {facts.key: facts.topic_ids for facts in seen.facts}
        receipts = valid_receipts(read_receipts(opened, today), today)
        # Where no run has copied yet, all records are ahead of the position, so none is missing.
        copied = [facts for facts in seen.facts if facts.head is not None]
        found = [(facts.key, gap) for facts in copied for gap in gaps(facts, receipts.get(facts.key, ()))]
        obstacle = COMPACTED if any(facts.compacted for facts in seen.facts) else ""
        # A backfill leaves heartbeats out.
        missing = [] if flow.is_heartbeats(topic) else _missing_ranges(opened.source, found, obstacle)
    return {
        "remote_topic": dict(seen.selection.selected).get(topic, ""),
        "partitions": timeline(seen.facts, chain.from_iterable(receipts.values()), missing),
        "missing": [asdict(gap) for gap in missing],
        "note": "",
    }


def _missing_ranges(source: OpenCluster, gaps: Sequence[Gap], obstacle: str) -> list[MissingRange]:
    """The `gaps` that hold records, each with the interval of a backfill that fills it. `obstacle`: of MissingRange."""
    deadline = time.monotonic() + LOOK_SECONDS
    firsts = first_records(source, gaps[:GAPS_LOOKED_AT], deadline) if gaps else {}
    found = []
    for gap in gaps:
        key, (start, end) = gap
        if gap not in firsts:
            found.append(MissingRange(key.partition, start, end, obstacle=obstacle or NOT_LOOKED_AT))
        elif (first := firsts[gap]) is not None:
            since, until, why_not = _interval(source.admin, key, first[1], end, deadline)
            found.append(MissingRange(key.partition, first[0], end, since, until, obstacle or why_not))
    return found


def _interval(source: ClusterAdmin, key: TopicPartition, moment: int, end: int, deadline: float) -> tuple[int | None, int | None, str]:
    """The interval of a backfill from `moment` (ms) to offset `end`, or why there is none."""
    if moment < 0:
        return None, None, NO_TIME
    if time.monotonic() > deadline:
        return None, None, NOT_LOOKED_AT

    def offset_at(milliseconds: int) -> int | None:
        found, problems = source.offsets_for_time([key], milliseconds)
        if key not in found:
            raise LookupError(problems.get(key, "no answer"))
        return found[key]

    try:
        until = interval_end(moment, end, offset_at)
    except LookupError as problem:
        return None, None, f"Ferry could not find its times: {problem}"
    return (None, None, NO_TIME) if until is None else (moment, until, "")


def interval_end(first_moment: int, end: int, offset_at: OffsetAt) -> int | None:
    """The earliest `until` > `first_moment` (ms) with no record at or after it below offset `end`; None: beyond what a calendar can say."""

    def covers(moment: int) -> bool:
        found = offset_at(moment)
        return found is None or found >= end

    low, step = first_moment, 1
    while low + step <= LAST_MOMENT:  # some clients write micro- or nanoseconds
        if covers(low + step):  # and not covers(low), unless that is the first moment, whose record is in the range
            return low + 1 + bisect_left(range(low + 1, low + step), True, key=covers)
        low += step
        step *= 2
    return None
