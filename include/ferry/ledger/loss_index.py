"""An index of the losses and gaps in a ledger: with it a reader of them need not read the whole ledger (pure).

For each partition of the ledger the index has the offset up to which it was read, the leader epoch of the last record before that offset,
and the offsets of the receipts of losses below it. A reader reads these receipts from the ledger again: a receipt that was replaced or
removed since is no longer there, and a new one comes later in the log. The index holds the gaps (gaps.py) themselves: a later receipt may
close them, and no older one opens them again.

Ferry never needs the index. If there is none yet, or if it has another version, or is of another ledger, or if the log was truncated, a
reader starts at the beginning of the ledger. The index is a field of the flow record. Older releases drop it when they write the record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any
from uuid import UUID

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.ledger.gaps import CopiedPair, GapFold, Gaps
from ferry.ledger.receipts import Glance, Receipt, ReceiptKind, decode_receipt, glance, is_loss
from ferry.wire.ranges import Ranges
from ferry.wire.strict_json import number, text

INDEX_VERSION = 2
# A run updates the index after this many new records of the ledger: reading them takes less than 0.2 CPU s.
NEW_RECORDS = 20_000
# So the flow record stays far below the default max.message.bytes of 1 MiB. After the last listed loss the ledger is read.
MOST_LISTED = 20_000
# For the same reason. A partition of the ledger whose gaps are in more pieces is read from its beginning.
MOST_GAPS = 2_000
_PERHAPS_LOST = frozenset({ReceiptKind.LOSS, ReceiptKind.SKIPPED})


@dataclass(frozen=True)
class IndexedShare:
    """One partition of the ledger: below `read_to` (exclusive) there are losses at the offsets `losses` (increasing) and nowhere else."""

    partition: int
    read_to: int
    epoch: int  # the leader epoch of the record at `read_to` - 1
    losses: tuple[int, ...] = ()
    gaps: tuple[tuple[CopiedPair, Ranges], ...] = ()  # all gaps of the source partitions with receipts below `read_to`


@dataclass(frozen=True)
class LossIndex:
    """The index of one ledger. `held_ever`: how many records the ledger had ever held when the index was made."""

    ledger_topic_id: str
    held_ever: int
    shares: tuple[IndexedShare, ...] = ()

    def document(self) -> dict[str, Any]:
        """The index as a JSON object. Offsets of losses: the first one, then the distances."""
        shares = [
            [
                *(share.partition, share.read_to, share.epoch),
                [there - before for before, there in pairwise((0, *share.losses))],
                [[*pair, ranges] for pair, ranges in share.gaps],
            ]
            for share in self.shares
        ]
        return {"version": INDEX_VERSION, "ledger_id": self.ledger_topic_id, "held": self.held_ever, "shares": shares}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "LossIndex | None":
        """The inverse; None for one of another version. ValueError, KeyError or TypeError for anything else."""
        if document["version"] != INDEX_VERSION:
            return None
        shares = tuple(
            IndexedShare(
                *(number(partition), number(read_to), number(epoch)), tuple(accumulate(map(number, distances))), tuple(map(_gaps, gaps))
            )
            for partition, read_to, epoch, distances, gaps in document["shares"]
        )
        return cls(str(UUID(document["ledger_id"])), number(document["held"]), shares)


def _gaps(entry: Iterable[Any]) -> tuple[CopiedPair, Ranges]:
    topic, partition, source_id, remote_id, ranges = entry
    pair = CopiedPair(text(topic), number(partition), text(source_id), text(remote_id))
    return pair, tuple((number(start), number(end)) for start, end in ranges)


def is_due(held_ever: int, index: LossIndex | None) -> bool:
    """Whether to update the index: enough records are new, or the ledger is another one. `held_ever`: as in LossIndex, now."""
    before = 0 if index is None else index.held_ever
    return held_ever < before or held_ever - before >= NEW_RECORDS


class LossFold:
    """Collects the losses and gaps of a ledger from its committed records.

    Add the records at `listed`, then those from `starts` on, both offsets by partition, in log order. `where`: see formats.place_of.
    """

    def __init__(self, shares: Iterable[IndexedShare], where: str) -> None:
        known = tuple(shares)
        self.listed = {share.partition: share.losses for share in known if share.losses}
        self.starts = {share.partition: share.read_to for share in known}
        self._read_to = {share.partition: (share.read_to, share.epoch) for share in known}
        # By key: partition, offset and leader epoch of the record, and the receipt.
        self._losses: dict[bytes, tuple[int, int, int, Receipt]] = {}
        self._gaps = GapFold({share.partition: share.gaps for share in known})
        self._where = where

    @property
    def losses(self) -> tuple[Receipt, ...]:
        """All of them, acknowledged or not."""
        return tuple(receipt for _, _, _, receipt in self._losses.values())

    @property
    def gaps(self) -> Gaps:
        return self._gaps.gaps

    @property
    def unsure(self) -> bool:
        """Whether the gaps depend on receipts that the ledger held before the index."""
        return self._gaps.unsure

    def add(self, record: InternalRecord) -> None:
        """Errors as in decode_receipt."""
        if record.offset >= self._read_to.get(record.partition, (0, -1))[0]:
            self._read_to[record.partition] = record.offset + 1, record.epoch
        receipt = self._loss_of(record)
        if receipt is None:
            self._losses.pop(record.key, None)
        else:
            self._losses[record.key] = (record.partition, record.offset, record.epoch, receipt)

    def index(self, ledger_topic_id: str, held_ever: int) -> LossIndex:
        """The index of all added records. It lacks partitions without leader epochs: nobody knows whether their log was truncated."""
        most = max(1, MOST_LISTED // max(1, len(self._read_to)))
        gaps, few = self._gaps.by_share(), MOST_GAPS // max(1, len(self._read_to))
        shares = (self._share(partition, most, gaps.get(partition, ())) for partition in sorted(self._read_to))
        kept = (share for share in shares if share.epoch >= 0 and sum(len(ranges) for _, ranges in share.gaps) <= few)
        return LossIndex(ledger_topic_id, held_ever, tuple(kept))

    def _share(self, partition: int, most: int, gaps: Iterable[tuple[CopiedPair, Ranges]]) -> IndexedShare:
        read_to, epoch = self._read_to[partition]
        found = sorted((offset, epoch) for number, offset, epoch, _ in self._losses.values() if number == partition)
        if len(found) > most:
            found = found[:most]
            read_to, epoch = found[-1][0] + 1, found[-1][1]
        return IndexedShare(partition, read_to, epoch, tuple(offset for offset, _ in found), tuple(gaps))

    def _loss_of(self, record: InternalRecord) -> Receipt | None:
        """The record's receipt, if it is of a loss. Also adds the receipt to the gaps."""
        if record.value is None:
            return None
        seen: Glance | Receipt = glance(record.key, record.value) or decode_receipt(record.key, record.value, self._where)
        self._gaps.add(seen, record.partition)
        if seen.kind not in _PERHAPS_LOST:
            return None
        receipt = seen if isinstance(seen, Receipt) else decode_receipt(record.key, record.value, self._where)
        return receipt if is_loss(receipt) else None
