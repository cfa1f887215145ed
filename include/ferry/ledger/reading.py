"""Reads the ledger and, of the state topic, when syncs were done.

Both are read up to the end that the topic has when the reading begins; the newest record of each key counts. open_flow.py reads the state
as a whole, and keeps it. The fence itself reads the topic too, because for it aborted records count (copying/fencing.py).
"""

from collections.abc import Iterable, Mapping

from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import OpenFlow, StateRecords, ask_state_records
from ferry.ledger.receipts import Receipt, covered, decode_receipt, glance
from ferry.ledger.state import FLOW_KEY, SYNC_KEY, SyncDone, decode_state, fold_state
from ferry.ledger.topic_ids import TopicIds, valid_receipts
from ferry.wire.ranges import Ranges


def ask_syncs_done(opened: OpenFlow) -> Asked[Mapping[str, SyncDone]]:
    """When each sync of the flow was last done. NewerFormat when a newer Ferry has had the flow.

    Asked before anything is written or fenced. Flow records of open transactions count too: a run of the newer Ferry may be under way.
    """
    topic, where = opened.flow.state_topic, place_of(opened.flow.target, opened.flow.state_topic)

    def done(records: StateRecords) -> Mapping[str, SyncDone]:
        for key, value in records:
            if key.startswith(FLOW_KEY) and value is not None:
                decode_state(key, value, where)
        return fold_state(((key, value) for key, value in records if key.startswith(SYNC_KEY)), where).syncs

    return ask_state_records(opened.target, topic, committed=False, complete=False).then(done)


def refuse_newer_state(opened: OpenFlow) -> None:
    """NewerFormat as of `ask_syncs_done`."""
    ask_syncs_done(opened).answer()


def read_receipts(opened: OpenFlow, wanted: Iterable[tuple[str, int]] | None = None) -> list[Receipt]:
    """Every receipt of the flow's ledger (of the partitions `wanted`), read to the bound of now; newest per key."""
    topic, reader = opened.flow.ledger_topic, opened.target.reader()
    where = place_of(opened.flow.target, topic)
    newest: dict[bytes, bytes] = {}  # decoded at the end: until compaction, the ledger holds a receipt as often as it has grown
    only = None if wanted is None else set(wanted)
    width = len(reader.partitions(topic))
    shares = None if only is None else {TopicPartition(*key).share(width) for key in only} if width else set()
    for record in reader.read(topic, only=shares, least=opened.written):
        if record.value is None:
            newest.pop(record.key, None)
            continue
        seen = None if only is None else glance(record.key, record.value)
        if only is not None and seen is not None and (seen.topic, seen.partition) not in only:
            continue
        newest[record.key] = record.value
    receipts = [decode_receipt(key, value, where) for key, value in newest.items()]
    return receipts if only is None else [receipt for receipt in receipts if receipt.key in only]


def read_coverage(opened: OpenFlow, today: Mapping[TopicPartition, TopicIds]) -> dict[TopicPartition, Ranges]:
    """What the ledger covers of the source partitions that `today` names. Receipts of recreated topics are void (topic_ids.py)."""
    return {key: covered(receipts) for key, receipts in valid_receipts(read_receipts(opened, today), today).items()}
