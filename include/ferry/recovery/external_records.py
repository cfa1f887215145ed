"""External records in remote partitions: no receipt explains them, because another replicator or a producer wrote them. Reads only.

Where Ferry never wrote, every record is external. Otherwise Ferry looks before its first record and after its last, because another
replicator may have run before Ferry or after it. Reading a log stops at the first record that is found.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.plan import PartitionFacts
from ferry.errors import ClusterUnreachable
from ferry.ledger.receipts import Receipt, ReceiptKind, covered
from ferry.ledger.topic_ids import TopicIds, valid_receipts
from ferry.wire.ranges import Ranges, outside

_PUT_THERE = frozenset({ReceiptKind.COPIED, ReceiptKind.BACKFILLED, ReceiptKind.FOREIGN})


@dataclass(frozen=True)
class Explained:
    """What the ledger says about one remote partition: settled upstream ranges, and the downstream range that it explains.

    `written`: none where Ferry never wrote; it begins at 0 where everything from the beginning on is explained. `found`: as of
    Receipt.found.
    """

    ranges: Ranges = ()
    written: Ranges = ()
    found: int = -1


def explained(facts: Collection[PartitionFacts], receipts: Iterable[Receipt]) -> dict[TopicPartition, Explained]:
    """By source partition (pure). Receipts of an older source topic explain records of the remote topic, but no offsets of today."""
    valid = valid_receipts(receipts, {entry.key: TopicIds(None, str(entry.remote_topic_id)) for entry in facts})
    return {entry.key: _explained(valid.get(entry.key, []), str(entry.topic_id)) for entry in facts}


def _explained(receipts: list[Receipt], source_topic_id: str) -> Explained:
    ranges = covered(receipt for receipt in receipts if receipt.source_topic_id == source_topic_id)
    written = [receipt for receipt in receipts if receipt.kind in _PUT_THERE and receipt.downstream_end >= 0]
    found = max((receipt.found for receipt in receipts), default=-1)
    if not written:
        return Explained(ranges, found=found)
    foreign = any(receipt.kind is ReceiptKind.FOREIGN for receipt in written)
    # A receipt without runs: its records have left the target's log. They were before all others.
    bare = any(not receipt.runs for receipt in written)
    first = 0 if foreign or bare else min(receipt.runs[0][1] for receipt in written)
    return Explained(ranges, ((first, max(receipt.downstream_end for receipt in written)),), found)


def find_external(
    flow: Flow, facts: Iterable[PartitionFacts], known: Mapping[TopicPartition, Explained], *, settled: bool
) -> dict[TopicPartition, int]:
    """Source partitions whose remote partition holds external records, with the end of its log. `settled`: wait for open transactions."""
    present = {entry.remote: entry for entry in facts if entry.remote_topic_id is not None and entry.partition < entry.remote_partitions}
    with ClusterAdmin(flow.target) as target:
        starts, problems = target.earliest_offsets(present)
        ends, more = target.end_offsets(present, committed=False)
    for (topic, partition), problem in {**problems, **more}.items():
        raise ClusterUnreachable(f"cluster {flow.target.alias}: {topic}-{partition}: {problem}")
    found = {}
    with InternalTopicReader(flow.target) as reader:
        for key, entry in present.items():
            written = known[entry.key].written
            unexplained = outside(written, starts[key], ends[key])
            # Where Ferry never wrote, it wrote not even in a transaction that was aborted.
            untouched = not written and entry.claimed_by is None and bool(unexplained)
            if untouched or any(
                record.offset < end
                for start, end in unexplained
                for record in reader.read(key.topic, {key.partition: start}, key.partition, complete=settled)
            ):
                found[entry.key] = ends[key]
    return found
