"""Records that are missing: the source has them below the position, and no receipt settles them. Only a backfill copies them.

The ledger's gaps are offsets. A gap that holds only control records and holes of compaction misses nothing, so Ferry reads the first record
of each gap, within a limit of time. A gap that could not be read in time counts as missing.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from shlex import quote

from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.partitions import TopicPartition, grouped
from ferry.config import Flow
from ferry.copying.plan import PartitionFacts
from ferry.errors import ClusterUnreachable, FerryError
from ferry.ledger.gaps import CopiedPair, Gaps
from ferry.wire.ranges import Range, outside, within

COMPACTED = "the remote topic is compacted: older records appended behind newer ones would replace them, so Ferry refuses a backfill"
# For all gaps of a flow together: a slow broker must not hang the command.
LOOK_SECONDS = 15.0
GAPS_LOOKED_AT = 500
# With more topics, the command is about all topics of the flow.
TOPICS_NAMED = 5

# One gap of a source partition.
Gap = tuple[TopicPartition, Range]
# Offset and time (ms) of a gap's first record.
First = tuple[int, int]


@dataclass(frozen=True)
class Missing:
    """Upstream `[start, end)` of a partition. `first_time`: of its first record in ms, -1: not known.

    `obstacle`: why Ferry refuses a backfill.
    """

    topic: str
    partition: int
    start: int
    end: int
    first_time: int = -1
    obstacle: str = ""

    @property
    def records(self) -> int:
        """Offsets, so control records count too."""
        return self.end - self.start


def read_missing(flow: Flow, facts: Iterable[PartitionFacts], gaps: Gaps) -> tuple[Missing, ...]:
    """What is missing by the ledger's `gaps`, in order. Asks the source only if there are gaps."""
    known = {entry.key: entry for entry in facts if not flow.policy.is_heartbeats_topic(entry.topic)} if gaps else {}
    found = [(key, gap) for key, entry in known.items() for gap in gaps_of(entry, gaps)]
    if not found:
        return ()
    try:
        firsts = first_records(flow, found[:GAPS_LOOKED_AT], time.monotonic() + LOOK_SECONDS)
    except ClusterUnreachable:  # a right is missing
        firsts = {}
    return tuple(_missing(found, firsts, {key for key, entry in known.items() if entry.compacted}))


def gaps_of(facts: PartitionFacts, gaps: Gaps) -> Iterator[Range]:
    """The gaps of the partition as it is today that the source still holds, without records that came from the target (pure)."""
    ids = facts.topic_ids
    for start, end in within(gaps.get(CopiedPair(*facts.key, ids.source, ids.remote), ()), facts.log_start, facts.position):
        yield from outside(facts.guard.excluded, start, end)


def first_records(flow: Flow, gaps: Iterable[Gap], deadline: float) -> Mapping[Gap, First | None]:
    """The first committed record of each gap, None for a gap without records. Gaps that were not read in time are absent."""
    found: dict[Gap, First | None] = {}
    with InternalTopicReader(flow.source) as reader:
        for together in zip_longest(*grouped((gap[0], gap) for gap in gaps).values()):  # one gap of every partition at once
            if time.monotonic() > deadline:
                break
            spans = dict(filter(None, together))
            for key, first in reader.first_records(spans, deadline - time.monotonic()).items():
                if isinstance(first, FerryError):
                    raise first
                found[key, spans[key]] = (first.offset, first.timestamp) if first else None
    return found


def _missing(gaps: Iterable[Gap], firsts: Mapping[Gap, First | None], compacted: Iterable[TopicPartition]) -> Iterator[Missing]:
    for key, (start, end) in gaps:
        first = firsts.get((key, (start, end)), (start, -1))
        if first is not None:
            yield Missing(*key, first[0], end, first[1], COMPACTED if key in compacted else "")


def backfill_command(command: str, missing: Sequence[Missing], now: float) -> str:
    """The command that copies these ranges, for a person to paste; empty if none does (pure). `command`: `ferry backfill` with its flow.

    It ends now: the ledger covers everything else of the interval, and a backfill copies nothing twice.
    """
    closable = [entry for entry in missing if not entry.obstacle and entry.first_time >= 0]
    if not closable:
        return ""
    topics = dict.fromkeys(entry.topic for entry in closable)
    since, until = min(entry.first_time for entry in closable) // 1000, int(now) + 1
    start, end = (datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for moment in (since, until))
    named = "".join(f" --topic {quote(topic)}" for topic in topics) if len(topics) <= TOPICS_NAMED else ""
    return f"{command}{named} --from {start} --until {end}"
