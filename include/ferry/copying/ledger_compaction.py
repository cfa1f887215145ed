"""Ledger compaction keeps the ledger's size in proportion to the records that the target retains, for any number of runs.

Neighbouring receipts of one kind are merged. Receipts whose records have left the target's log lose their runs, but keep their range, so
that Ferry never takes copied offsets for a gap. Some receipts stay as they are: the newest receipt of a partition, losses (people
acknowledge them by their start), receipts younger than a day (reports find them by run id), and receipts with fields of a newer Ferry. The
decision is pure. Writing happens in one transaction under a transactional id of its own, which is fenced before the ledger is read.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from ferry import clock
from ferry.clusters.logs.internal_batches import KeyValue
from ferry.clusters.logs.internal_reader import InternalTopicReader
from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.copying.fencing import FencedWriter
from ferry.copying.joined_receipts import joined
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.receipts import RUNS_PER_RECEIPT, Receipt, ReceiptKind, decode_receipt, encode_receipt, holds_more, is_loss
from ferry.ledger.state import FlowRecord

MERGED = frozenset({ReceiptKind.COPIED, ReceiptKind.BACKFILLED, ReceiptKind.SKIPPED, ReceiptKind.FOREIGN})
YOUNG_MILLISECONDS = 24 * 3600 * 1000
NEVER_OLD = 1 << 62
# The ledger is compacted after at least this many new records: then reading all of it costs little compared with the copies.
COMPACTION_RECORDS = 20_000


@dataclass(frozen=True)
class LedgerCompaction:
    """Merged receipts to write, and the receipts that they replace. `left`: how many receipts the ledger holds afterwards."""

    merged: tuple[Receipt, ...]
    replaced: tuple[Receipt, ...]
    left: int = 0


def merge_receipts(receipts: Iterable[Receipt], log_starts: Mapping[tuple[str, int], int]) -> LedgerCompaction:
    """Merge receipts (pure). `receipts`: the old ones; `log_starts`: of remote partitions.

    A merged receipt keeps the key of its first one. Receipts of handled records stay apart: a verify compares the contents of others only.
    """
    groups = grouped((_alike(receipt), receipt) for receipt in receipts if receipt.kind in MERGED and not is_loss(receipt))
    merged: list[Receipt] = []
    replaced: list[Receipt] = []
    for group in groups.values():
        for chain in _chains(sorted(group, key=lambda receipt: receipt.upstream_start), log_starts):
            result = _merged(chain, log_starts)
            if result != chain[0]:
                merged.append(result)
                replaced += [receipt for receipt in chain if receipt.upstream_start != result.upstream_start]
    return LedgerCompaction(tuple(merged), tuple(replaced))


def _alike(receipt: Receipt) -> tuple[object, ...]:
    where = (receipt.topic, receipt.partition, receipt.source_topic_id, receipt.remote_topic_id)
    return *where, receipt.kind, receipt.reason, receipt.series, receipt.counters.by_handler, receipt.remote_epoch


def _expired(receipt: Receipt, log_starts: Mapping[tuple[str, int], int]) -> bool:
    return 0 <= receipt.downstream_end <= log_starts.get((receipt.remote_topic, receipt.partition), 0)


def _chains(ordered: list[Receipt], log_starts: Mapping[tuple[str, int], int]) -> list[list[Receipt]]:
    """Groups of receipts that follow each other without a gap and fit one receipt. Expired ones, which lose their runs, are apart.

    The runs of a receipt increase on both sides: so of two backfills that ran in the other order, the receipts stay apart.
    """
    chains: list[list[Receipt]] = []
    runs = downstream = 0
    for receipt in ordered:
        gone = _expired(receipt, log_starts)
        kept = () if gone else receipt.runs
        last = chains[-1][-1] if chains else None
        joins = last is not None and last.upstream_end == receipt.upstream_start and _expired(last, log_starts) == gone
        if joins and runs + len(kept) <= RUNS_PER_RECEIPT and not (kept and kept[0][1] < downstream):
            chains[-1].append(receipt)
            runs += len(kept)
        else:
            chains.append([receipt])
            runs, downstream = len(kept), 0
        downstream = receipt.downstream_end if kept else downstream
    return chains


def _merged(chain: list[Receipt], log_starts: Mapping[tuple[str, int], int]) -> Receipt:
    kept = [replace(receipt, runs=(), written=(), repeated=()) if _expired(receipt, log_starts) else receipt for receipt in chain]
    found = joined(kept)
    if len(chain) == 1:
        return found
    # A merged receipt belongs to no single run: it has no run id, and no delays.
    return replace(found, counters=found.counters._replace(record_age_ms=None, replication_latency_ms=None), run_id="")


def is_due(held_ever: int, record: FlowRecord) -> bool:
    """Whether to compact: if the ledger has as many new records as it had after the last compaction, and at least COMPACTION_RECORDS.

    `held_ever`: how many records the ledger ever held, transaction markers among them.
    """
    recreated = held_ever < record.tidied
    return recreated or held_ever - record.tidied >= max(COMPACTION_RECORDS, record.receipts)


def mergeable(found: Collection[tuple[Receipt, int]], now_ms: int) -> list[Receipt]:
    """Of receipts and the timestamps of their records, those that are old enough, but not the newest of each partition (pure)."""
    newest: dict[TopicPartition, int] = {}
    for receipt, _ in found:
        key = receipt.key
        newest[key] = max(newest.get(key, -1), receipt.upstream_end)
    young = now_ms - YOUNG_MILLISECONDS
    return [receipt for receipt, timestamp in found if timestamp < young and receipt.upstream_end < newest[receipt.key]]


def records_of(done: LedgerCompaction) -> list[KeyValue]:
    """The records to write, merged receipts first: a reader whose bound lies among them finds a range twice, and never misses one."""
    return [*(encode_receipt(receipt) for receipt in done.merged), *((encode_receipt(receipt)[0], None) for receipt in done.replaced)]


def compact_ledger(opened: OpenFlow) -> LedgerCompaction:
    """Fence, then read, merge and write one partition of the ledger at a time, to save memory. Returns what was written."""
    flow, reader = opened.flow, opened.target.reader()
    topic = flow.ledger_topic
    merged: list[Receipt] = []
    replaced: list[Receipt] = []
    left = 0
    with FencedWriter(opened, flow.transactional_id("upkeep")) as writer:
        for share in reader.partitions(topic):
            found = _receipts(reader, share, topic, place_of(flow.target, topic))
            old = mergeable(found, clock.time_ms())
            keys = {TopicPartition(receipt.remote_topic, receipt.partition) for receipt in old}
            log_starts, _ = opened.target.admin.earliest_offsets(sorted(keys))
            done = merge_receipts(old, {(key.topic, key.partition): offset for key, offset in log_starts.items()})
            if done.merged or done.replaced:
                writer.write({TopicPartition(topic, share): records_of(done)})
            merged += done.merged
            replaced += done.replaced
            left += len(found) - len(done.replaced)
    return LedgerCompaction(tuple(merged), tuple(replaced), left)


def _receipts(reader: InternalTopicReader, share: int, topic: str, where: str) -> Collection[tuple[Receipt, int]]:
    """Valid receipts of one partition of the ledger, with their records' timestamps."""
    newest = {record.key: (record.value, record.timestamp) for record in reader.read(topic, only={share})}
    return [
        # A merged receipt would lose the fields that a newer Ferry added.
        (decode_receipt(key, value, where), NEVER_OLD if holds_more(key, value) else timestamp)
        for key, (value, timestamp) in newest.items()
        if value is not None
    ]
