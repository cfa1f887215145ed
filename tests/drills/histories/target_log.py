"""The target's log of a partition, put together from what all its readers saw. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.drills.histories.anomalies import Anomaly, Kind
from tests.drills.histories.model import Place, Poll, RecordId, Seen


@dataclass
class TargetLog:
    """One partition: what was first seen at each offset."""

    records: dict[int, Seen] = field(default_factory=dict)

    def in_order(self) -> list[Seen]:
        """By target offset."""
        return [self.records[offset] for offset in sorted(self.records)]

    def first_offsets(self) -> dict[RecordId, int]:
        """Where each record stands first."""
        found: dict[RecordId, int] = {}
        for seen in self.in_order():
            if seen.id is not None:
                found.setdefault(seen.id, seen.offset)
        return found


def put_together(polls: Iterable[Poll]) -> tuple[dict[Place, TargetLog], list[Anomaly]]:
    """The logs, and offsets at which readers saw different records."""
    logs: defaultdict[Place, TargetLog] = defaultdict(TargetLog)
    found: list[Anomaly] = []
    for poll in polls:
        log = logs[poll.place].records
        for seen in poll.records:
            known = log.setdefault(seen.offset, seen)
            if known != seen:
                found.append(Anomaly(Kind.INCONSISTENT, *poll.place, f"offset {seen.offset} is {known} and, to {poll.reader}, {seen}"))
    return dict(logs), found


def read_in_order(polls: Iterable[Poll], logs: Mapping[Place, TargetLog], compacted: frozenset[str]) -> list[Anomaly]:
    """Where a reader, which never seeks, went backwards or left out what stands in the log.

    Of compacted topics a reader may miss what the cleaner took before it came.
    """
    index = {place: {offset: number for number, offset in enumerate(sorted(log.records))} for place, log in logs.items()}
    last: dict[tuple[str, Place], int] = {}
    found: list[Anomaly] = []
    for poll in polls:
        within = False
        for seen in poll.records:
            before = last.get((poll.reader, poll.place))
            if before is not None and seen.offset <= before:
                kind = Kind.INT_NONMONOTONIC if within else Kind.NONMONOTONIC
                found.append(Anomaly(kind, *poll.place, f"{poll.reader} read offset {seen.offset} after {before}"))
            elif before is not None and poll.place[0] not in compacted:
                skipped = index[poll.place][seen.offset] - index[poll.place][before] - 1
                if skipped:
                    kind = Kind.INT_POLL_SKIP if within else Kind.POLL_SKIP
                    text = f"{poll.reader} read offset {seen.offset} after {before} and left out {skipped} records"
                    found.append(Anomaly(kind, *poll.place, text))
            last[poll.reader, poll.place] = seen.offset
            within = True
    return found
