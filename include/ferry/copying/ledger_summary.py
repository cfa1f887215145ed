"""All that a status needs of a ledger: its losses, and how large records are. It keeps only losses in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferry.clusters.internal_reader import InternalTopicReader
from ferry.copying.formats import place_of
from ferry.copying.receipt_glance import glance
from ferry.copying.receipts import Receipt, ReceiptKind, decode_receipt, is_loss
from ferry.policy.naming import ledger_topic

if TYPE_CHECKING:
    from ferry.config import Flow

_PERHAPS_LOST = frozenset({ReceiptKind.LOSS, ReceiptKind.SKIPPED})


@dataclass(frozen=True)
class LedgerSummary:
    """`losses`: all of them, acknowledged or not. `sizes`: average bytes of a copied record, by source partition. Some records count twice
    while the broker has not compacted merged receipts."""

    losses: tuple[Receipt, ...]
    sizes: dict[tuple[str, int], float]


def read_ledger_summary(flow: Flow) -> LedgerSummary:
    """Read the ledger to the bound of now. Errors as of InternalTopicReader.read and decode_receipt."""
    topic = ledger_topic(flow.source.alias)
    where = place_of(flow.target, topic)
    losses: dict[bytes, Receipt] = {}
    totals: dict[tuple[str, int], tuple[int, int]] = {}
    with InternalTopicReader(flow.target) as reader:
        for record in reader.read(topic):
            if record.value is None:
                losses.pop(record.key, None)
                continue
            seen = glance(record.key, record.value)
            if seen is None or seen.kind in _PERHAPS_LOST:
                receipt = decode_receipt(record.key, record.value, where)
                if is_loss(receipt):
                    losses[record.key] = receipt
                place, copied, size = (receipt.topic, receipt.partition), receipt.records, receipt.bytes
            else:
                place, copied, size = (seen.topic, seen.partition), seen.records, seen.bytes
            before = totals.get(place, (0, 0))
            totals[place] = (before[0] + copied, before[1] + size)
    return LedgerSummary(tuple(losses.values()), {place: size / copied for place, (copied, size) in totals.items() if copied})
