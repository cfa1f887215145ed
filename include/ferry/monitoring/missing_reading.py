"""Reads which records are missing (missing.py).

The ledger's gaps are offsets. A gap that holds only control records and holes of compaction misses nothing, so Ferry reads the first record
of each gap, within a limit of time. A gap that could not be read in time counts as missing.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

from ferry import clock
from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.clusters.open_cluster import OpenCluster
from ferry.copying.partition_plan import PartitionFacts
from ferry.errors import ClusterUnreachable, FerryError
from ferry.ledger.gaps import CopiedPair, Gaps
from ferry.ledger.open_flow import OpenFlow
from ferry.monitoring.missing import COMPACTED, LAST_MOMENT, NO_TIME, Missing
from ferry.wire.ranges import Range, outside, within

# For all gaps of a flow together: a slow broker must not hang the command.
LOOK_SECONDS = 15.0
GAPS_LOOKED_AT = 500
# One gap of a source partition.
Gap = tuple[TopicPartition, Range]
# Offset and time (ms) of a gap's first record.
First = tuple[int, int]


def read_missing(
    opened: OpenFlow, facts: Iterable[PartitionFacts], gaps: Gaps, kept: Mapping[TopicPartition, float | None]
) -> tuple[Missing, ...]:
    """What is missing by the ledger's `gaps`, in order. Asks the source only if there are gaps. `kept`: as Missing's `kept_seconds`."""
    is_heartbeats = opened.flow.is_heartbeats
    known = {entry.key: entry for entry in facts if not is_heartbeats(entry.topic)} if gaps else {}
    found = [(key, gap) for key, entry in known.items() for gap in gaps_of(entry, gaps)]
    if not found:
        return ()
    try:
        firsts = first_records(opened.source, found[:GAPS_LOOKED_AT], clock.monotonic() + LOOK_SECONDS)
    except ClusterUnreachable:  # a right is missing
        firsts = {}
    missing = []
    for key, (start, end) in found:
        read = (key, (start, end)) in firsts
        first = firsts[key, (start, end)] if read else (start, -1)
        if first is not None:
            unusable = NO_TIME if read and not 0 <= first[1] < LAST_MOMENT else ""
            missing.append(Missing(*key, first[0], end, first[1], COMPACTED if known[key].compacted else unusable, kept.get(key)))
    return tuple(missing)


def gaps_of(facts: PartitionFacts, gaps: Gaps) -> Iterator[Range]:
    """The gaps of the partition as it is today that the source still holds, without records that came from the target (pure)."""
    ids = facts.topic_ids
    for start, end in within(gaps.get(CopiedPair(*facts.key, ids.source, ids.remote), ()), facts.log_start, facts.position):
        yield from outside(facts.guard.excluded, start, end)


def first_records(source: OpenCluster, gaps: Iterable[Gap], deadline: float) -> Mapping[Gap, First | None]:
    """The first committed record of each gap, None for a gap without records. Gaps that were not read in time are absent."""
    found: dict[Gap, First | None] = {}
    reader = source.reader()
    for together in zip_longest(*grouped((gap[0], gap) for gap in gaps).values()):  # one gap of every partition at once
        if clock.monotonic() > deadline:
            break
        spans = dict(filter(None, together))
        for key, first in reader.first_records(spans, deadline - clock.monotonic()).items():
            if isinstance(first, FerryError):
                raise first
            found[key, spans[key]] = (first.offset, first.timestamp) if first else None
    return found
