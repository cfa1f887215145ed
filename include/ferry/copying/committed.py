"""How far a run is, by its commits (pure). The log, the terminal and the page say it in the same words.

Source offsets count as records, so control records count too, as in the lag. The speed is that of the last minute. It counts from the first
commit on: the seconds that Spark and its workers took to start say nothing about the rest of the copy.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from operator import itemgetter
from typing import Any

from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import count_of, span
from ferry.ledger.counters import ZERO
from ferry.ledger.receipts import COPIES, Receipt, ReceiptKind

# A transaction holds up to ten seconds of work. Less than a minute would have few transactions, and the speed would jump.
RATE_SECONDS, LEAST_SECONDS = 60, 2
# For a run that follows, the commits of this many seconds say how far it is behind.
BEHIND_SECONDS = 10
PARTITIONS_NAMED, NAME_CHARACTERS = 3, 40

_SETTLED = frozenset({*COPIES, ReceiptKind.LOSS, ReceiptKind.SKIPPED})
_SAID = re.compile(r"following:|([\d,]+) of ([\d,]+) records? \(")


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    records: int | None  # records that are done; None: not counted
    left: int | None = None  # records still to copy; None: not known
    last: tuple[tuple[str, int], ...] = ()  # the partitions with the most left
    rate: float | None = None  # records a second, and `bytes_rate` bytes a second; None: not known yet
    bytes_rate: float | None = None
    since: float | None = None  # seconds since the newest commit; None: there is none
    follows: bool = False
    # If the run follows: how old a partition's newest record was when it was committed, in s, the most of all. None: not known.
    behind: float | None = None

    @property
    def share(self) -> float | None:
        """From 0 to 1; None: not known."""
        if self.records is None or self.left is None:
            return None
        return self.records / (self.records + self.left) if self.left else 1.0

    def time_left(self, left: int) -> str:
        """How long `left` records take at this speed, in words, behind a comma; empty: there are none, or nothing is copied now."""
        if not left or self.since is None or self.rate == 0:
            return ""
        return ", time left: not known yet" if self.rate is None else f", about {span(max(1.0, left / self.rate))} left"

    @property
    def text(self) -> str:
        done = "" if self.records is None else count_of(self.records, "record")
        if self.records is not None and self.left is not None and self.share is not None:
            done = f"{self.records:,} of {count_of(self.records + self.left, 'record')} ({int(100 * self.share)}%)"
        done += "" if self.bytes_rate is None else f", {self.bytes_rate / 1e6:,.1f} MB/s"
        if self.follows:
            told = [done, *([] if self.behind is None else [f"records are on the target after {_brief(self.behind)}"])]
            told += [] if self.since is None else [f"the newest records were committed {_brief(self.since)} ago"]
            return f"following: {'; '.join(filter(None, told)) or 'nothing was committed in the last minute'}"
        told = [done + self.time_left(self.left or 0)]
        told += [f"the last commit was {span(self.since)} ago"] if self.since is not None and self.since > RATE_SECONDS else []
        last = (f"{shortened(name, NAME_CHARACTERS)} ({left:,})" for name, left in self.last)
        return "; ".join([*told, *([f"most left: {', '.join(last)}"] if self.last else [])])


def _brief(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 0.05 else "less than 0.1 s"


def progress_in(line: str) -> tuple[int, int | None] | None:
    """How many records are done, and of how many (None: not known), if the line is the text of a Progress that has an end or follows."""
    found = _SAID.match(line)
    done, total = [int(number.replace(",", "")) for number in found.groups("0")] if found is not None else (0, 0)
    return None if found is None else (done, total if found[2] else None)


def most_left(left: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """`left` and `last` of a Progress."""
    last = nlargest(PARTITIONS_NAMED, left.items(), itemgetter(1))
    return {"left": sum(left.values()), "last": tuple((f"{topic}-{number}", count) for (topic, number), count in last if count)}


def shortened(name: str, width: int) -> str:
    """The name, or its beginning and its end: similar names often differ at the end."""
    begin = (width - 1) // 2
    return name if len(name) <= width else f"{name[:begin]}…{name[len(name) - (width - 1 - begin) :]}"


@dataclass
class Committed:
    """Sums over the receipts of a run so far."""

    left: dict[TopicPartition, int] | None = None  # by partition, the offsets to copy; None: not known
    follows: bool = False
    records: int = 0
    newest: dict[TopicPartition, Receipt] = field(default_factory=dict)  # the last receipt of each partition
    _newest_at: float = 0.0
    _amounts: dict[int, tuple[int, int]] = field(default_factory=dict)  # by second of the clock: records and bytes that were committed then
    # By partition: when its newest records were committed, and how old the newest one was at that moment.
    _delays: dict[TopicPartition, tuple[float, float]] = field(default_factory=dict)

    def add(self, receipt: Receipt, at: float) -> None:
        """`at`: when it was committed, in s since the epoch. A receipt of a run that follows may be an earlier one that has grown."""
        if receipt.kind not in _SETTLED:
            return
        last = self.newest.get(receipt.key)
        self.newest[receipt.key] = receipt
        grown = last is not None and (last.kind, last.upstream_start) == (receipt.kind, receipt.upstream_start)
        start, before = (last.upstream_end, last.counters) if last is not None and grown else (receipt.upstream_start, ZERO)
        more = receipt.counters.since(before)
        self.count(receipt.key, receipt.upstream_end - start - more.from_target, more.bytes, at)
        if more.records and receipt.max_timestamp >= 0:
            self._delays[receipt.key] = at, max(0.0, at - receipt.max_timestamp / 1000)

    def count(self, key: TopicPartition, records: int, size: int, at: float) -> None:
        self.records, self._newest_at = self.records + records, max(self._newest_at, at)
        if self.left is not None:
            self.left[key] = max(0, self.left.get(key, 0) - records)
        before = self._amounts.get(int(at), (0, 0))
        self._amounts[int(at)] = before[0] + records, before[1] + size

    def progress(self, now: float) -> Progress:
        """`now` in s since the epoch. While nothing is committed, the speed of the last minute stays for a minute, and then falls."""
        left = {} if self.left is None else most_left(self.left)
        if not self._amounts:
            return Progress(0, follows=self.follows, **left)
        newest = max(self._amounts)
        self._amounts = {second: amount for second, amount in self._amounts.items() if second >= newest - RATE_SECONDS}
        first = min(self._amounts)
        took, rate, bytes_rate = max(newest, now - RATE_SECONDS) - first, None, None
        if took >= LEAST_SECONDS:  # records of the first commit were copied before it
            rate, bytes_rate = (sum(amount[part] for second, amount in self._amounts.items() if second > first) / took for part in (0, 1))
        behind = max((delay for at, delay in self._delays.values() if at > newest - BEHIND_SECONDS), default=None)
        since = max(0.0, now - self._newest_at)
        return Progress(self.records, rate=rate, bytes_rate=bytes_rate, since=since, follows=self.follows, behind=behind, **left)
