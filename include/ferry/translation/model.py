"""What a translation says."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Inexact(StrEnum):
    """Why a translated position is not exactly where the consumer would go on. Every one re-reads; none skips.

    Said of the forward direction; in the inverse one source and target change places.
    """

    AHEAD = "ahead"  # beyond what was copied: what follows is read again once it is there
    BACKFILLED = "backfilled"  # older records were appended after newer ones
    NOT_COPIED = "not-copied"  # records from there on were never copied
    TARGET_EXPIRED = "target-expired"  # the target's log begins later
    MERGED = "merged"  # identity in both directions: the minimum of two images
    UNEXPLAINED = "unexplained"  # behind the image lie records that no receipt explains: another replicator's, or repeated ones


@dataclass(frozen=True, slots=True)
class Translation:
    """One offset and its image on the other side; `reason` is None exactly when the image is exact.

    `ahead`: how many offsets lie between what was copied and `offset`, where it is beyond that: once copied, they are read again.
    """

    offset: int
    image: int
    reason: Inexact | None = None
    ahead: int = field(default=0, compare=False)

    @property
    def exact(self) -> bool:
        """Whether a read_committed consumer reads from the image just what it would have read next."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class TranslatedPosition:
    """Where a group stands in one partition, on both sides.

    `topic` is what the group reads, on the cluster that it was read from (the flow's source; in a reverse pass its target); `remote_topic`
    holds the same records on the other cluster, empty when that is not known. `upstream_offset` is the group's own offset. None: it has no
    offset there (a partition of a topic that it reads, never read by it); then `translation` says where the beginning of that partition is
    on the other side. `translation` None: nothing can be said. `problem` says why there is no offset or no translation; empty otherwise.
    `unread`: there is no translation because a cluster did not tell what it takes; another try may find one.
    """

    group: str
    topic: str
    partition: int
    remote_topic: str
    upstream_offset: int | None
    translation: Translation | None
    metadata: str = ""
    problem: str = ""
    unread: bool = False
