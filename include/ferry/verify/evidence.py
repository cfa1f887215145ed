"""What is known about one partition when a verify is planned."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.ledger.receipts import Receipt
from ferry.wire.ranges import Ranges


@dataclass(frozen=True)
class PartitionEvidence:
    """One source partition and its remote partition. Topic ids as receipts hold them.

    The order makes it sound: `target_end` (the last stable offset) was captured first, then `receipts` were read to the ledger's end, then
    `source_end` (last stable offset) and both log starts. `receipts`: all whose remote topic id is today's, also of a source topic that was
    recreated since. `position`: the next upstream offset to copy (-1: never copied). `excluded`: upstream offsets that the flow in the
    other direction wrote. `local`: records may be produced on the target, because names stay as they are. `since`, `until`: upstream
    bounds of what was asked for.
    """

    topic: str
    partition: int
    source_topic_id: str
    remote_topic: str
    remote_topic_id: str
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    receipts: tuple[Receipt, ...] = ()
    position: int = -1
    excluded: Ranges = ()
    local: bool = False
    exactly_once: bool = True
    source_compacted: bool = False
    target_compacted: bool = False
    since: int | None = None
    until: int | None = None

    @property
    def narrowed(self) -> bool:
        """Whether only a part of the partition was asked for."""
        return self.since is not None or self.until is not None

    @property
    def wanted(self) -> tuple[int, int]:
        """The upstream offsets that were asked for and that the source still has."""
        start = self.source_start if self.since is None else max(self.source_start, self.since)
        return start, max(start, self.source_end if self.until is None else min(self.source_end, self.until))
