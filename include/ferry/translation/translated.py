"""Translated offsets and positions of groups."""

from dataclasses import dataclass, field
from enum import StrEnum


class Inexact(StrEnum):
    """Why a translated position is not exactly where the consumer would go on. In every case it reads records again, and skips none.

    The words are for the forward direction; in the inverse direction source and target are exchanged.
    """

    AHEAD = "ahead"  # beyond what was copied: once the records in between are copied, the consumer reads them again
    BACKFILLED = "backfilled"  # older records were appended after newer ones
    NOT_COPIED = "not-copied"  # records from there on were never copied
    TARGET_EXPIRED = "target-expired"  # the target's log begins later
    MERGED = "merged"  # identity in both directions: the smaller of two images
    UNEXPLAINED = "unexplained"  # no receipt explains some records from the image on: another replicator's, or repeated ones
    NO_OFFSET = "no-offset"  # the group has none there: it begins where the copies begin, for any auto.offset.reset
    METADATA = "metadata"  # its commit metadata may count offsets, and offsets shift: they are left out


@dataclass(frozen=True, slots=True)
class Translation:
    """The image of an offset on the other side. `reason`: why the image is not exact; None when it is."""

    image: int
    reason: Inexact | None = None
    ahead: int = field(default=0, compare=False)  # how far it is beyond the copied offsets: once copied, the consumer reads these again

    @property
    def exact(self) -> bool:
        """Whether a read_committed consumer reads from the image on exactly what it would have read next."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class TranslatedPosition:
    """Where a group stands in one partition, on both sides."""

    group: str
    topic: str  # the topic that the group reads on its own cluster: on the flow's source; in a reverse pass on its target
    partition: int
    remote_topic: str  # the topic with the same records on the other cluster; empty: not known
    # The group's own offset. None: it reads the topic and has none for the partition. Then `translation` is that of its beginning.
    upstream_offset: int | None
    translation: Translation | None  # None: there is none
    metadata: str = ""  # those to commit on the other cluster (commit_metadata.py)
    problem: str = ""  # why there is no offset or no translation; empty otherwise
    unread: bool = False  # there is no translation because a cluster did not answer. Another try may find one
    source_metadata: str = ""  # the group's own metadata
