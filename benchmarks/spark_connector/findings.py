"""What a copy of a topic lacks, has too much, or has otherwise, as a client sees it that shares no code with either copier.

The values of a topic are unique. The source is what a read_committed consumer reads of it; `extra` are records that it does not read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tools.kafka import read_all
from tools.kafka.reading import NotReadable, RecordSeen


@dataclass(frozen=True)
class Findings:
    """Numbers of records. `behind`: those that are behind a record that was after them at the source."""

    records: int
    copied: int
    lost: int
    twice: int
    extra: int
    other_time: int
    other_headers: int
    other_partition: int
    behind: int

    def __str__(self) -> str:
        """Which records are wrong in number or order."""
        return _told(self, lost=self.lost, twice=self.twice, not_committed_at_the_source=self.extra, out_of_order=self.behind)

    @property
    def fields(self) -> str:
        """Which records are not as they were."""
        changed = {
            "with another timestamp": self.other_time,
            "without headers": self.other_headers,
            "in another partition": self.other_partition,
        }
        return _told(self, **changed)


def _told(found: Findings, **told: int) -> str:
    wrong = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in told.items() if count)
    return wrong or f"exact: {found.records:,} records"


def findings(source: str, topic: str, target: str, remote: str) -> Findings:
    """`source`, `target`: bootstrap servers. A remote topic that does not exist is empty."""
    there = read_all(source, topic)
    try:
        here = read_all(target, remote)
    except NotReadable:
        here = []
    origin = {record.value: (number, record) for number, records in enumerate(there) for record in records}
    seen = Counter(record.value for records in here for record in records)
    known = [(number, record, *origin[record.value]) for number, records in enumerate(here) for record in records if record.value in origin]
    return Findings(
        records=len(origin),
        copied=seen.total(),
        lost=len(origin.keys() - seen.keys()),
        twice=sum(count - 1 for value, count in seen.items() if value in origin),
        extra=sum(count for value, count in seen.items() if value not in origin),
        other_time=sum(record.timestamp != original.timestamp for _, record, _, original in known),
        other_headers=sum(record.headers != original.headers for _, record, _, original in known),
        other_partition=sum(number != place for number, _, place, _ in known),
        behind=sum(_behind(records, origin) for records in here),
    )


def _behind(records: list[RecordSeen], origin: dict[bytes | None, tuple[int, RecordSeen]]) -> int:
    """Records of one remote partition that come after a later record of the same source partition. Repeated ones count once."""
    newest: dict[int, int] = {}
    met = set[bytes | None]()
    count = 0
    for record in records:
        if record.value not in origin or record.value in met:
            continue
        met.add(record.value)
        place, original = origin[record.value]
        count += original.offset < newest.get(place, -1)
        newest[place] = max(newest.get(place, -1), original.offset)
    return count
