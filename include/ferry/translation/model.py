"""What a translation says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Inexact(StrEnum):
    """Why a translated position is not exactly where the consumer would go on. Every one re-reads; none skips."""

    AHEAD = "ahead"  # beyond what was copied: what follows is read again once it is there
    BACKFILLED = "backfilled"  # older records were appended after newer ones
    NOT_COPIED = "not-copied"  # no record from there on is on the target
    TARGET_EXPIRED = "target-expired"  # the target's log begins later
    MERGED = "merged"  # identity in both directions: the minimum of two images


@dataclass(frozen=True, slots=True)
class Translation:
    """One offset and its image on the other side; `reason` is None exactly when the image is exact."""

    offset: int
    image: int
    reason: Inexact | None = None

    @property
    def exact(self) -> bool:
        """Whether a read_committed consumer reads from the image just what it would have read next."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class TranslatedPosition:
    """Where a group stands in one partition, on both sides.

    `upstream_offset` None: the group has no offset there (a partition of a topic that it reads, never read by it); then `translation` says
    where the beginning of the source's partition lies on the target. `translation` None: nothing can be said, `problem` says why.
    """

    group: str
    topic: str
    partition: int
    remote_topic: str
    upstream_offset: int | None
    translation: Translation | None
    metadata: str = ""
    problem: str = ""
