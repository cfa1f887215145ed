"""Reads the losses and gaps of a ledger. With an index it reads only known losses and new receipts. Only losses are kept in memory.

After `ferry ack-loss` an operator has seen the losses. They stay in the ledger, and `ferry status` no longer counts them.
"""

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from ferry.clusters.logs.internal_producer import append_records
from ferry.clusters.logs.leader_epochs import ReadTo, same_logs
from ferry.clusters.net.partitions import TopicPartition
from ferry.ledger.formats import place_of
from ferry.ledger.loss_index import IndexedShare, LossFold, LossIndex
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.receipts import Receipt
from ferry.ledger.state import FlowState, LossAcknowledged, encode_state
from ferry.ledger.topic_ids import NO_ID


def read_losses(opened: OpenFlow, index: LossIndex | None, *, complete: bool = True) -> LossFold:
    """Every loss and gap in the ledger now. `complete`: as in InternalTopicReader.read. `index`: of the flow record.

    After a seed, it reads the ledger from its beginning until the next index is made. Errors: of InternalTopicReader.read, decode_receipt.
    """
    topic, reader = opened.flow.ledger_topic, opened.target.reader()
    fold = LossFold(_standing(opened, index), place_of(opened.flow.target, topic))
    for record in reader.records_at(topic, fold.listed):
        fold.add(record)
    for record in reader.read(topic, fold.starts, complete=complete):
        fold.add(record)
    return read_losses(opened, None, complete=complete) if fold.unsure else fold


def index_losses(opened: OpenFlow, index: LossIndex | None, ledger_topic_id: str, held_ever: int) -> LossIndex:
    """The updated index, up to the first open transaction.

    `ledger_topic_id`: read before. If the ledger is replaced meanwhile, the index has the old id, and so nobody uses it.
    """
    read = read_losses(opened, index, complete=False)
    made = read.index(ledger_topic_id, held_ever)
    # Since the check, an unclean election may have truncated a log below `index`. Then new records there were not read.
    cut_off = read.starts.keys() - {share.partition for share in _standing(opened, index)}
    return replace(made, shares=tuple(share for share in _standing(opened, made) if share.partition not in cut_off))


def _standing(opened: OpenFlow, index: LossIndex | None) -> tuple[IndexedShare, ...]:
    """The valid part of the index: of the same topic, and of logs that no unclean election has truncated below the indexed offsets."""
    if index is None:
        return ()
    topic = opened.flow.ledger_topic
    places = {TopicPartition(topic, share.partition): share for share in index.shares}
    read = {key: ReadTo(share.read_to, share.epoch) for key, share in places.items()}
    same = same_logs(opened.target, read, {topic: UUID(index.ledger_topic_id)})
    return tuple(share for key, share in places.items() if key in same)


def open_losses(opened: OpenFlow) -> list[Receipt]:
    """Losses of the ledger that nobody has acknowledged; records that the target refused count too."""
    state = opened.state
    return unacknowledged(read_losses(opened, state.flow.losses if state.flow else None).losses, state)


def unacknowledged(losses: Iterable[Receipt], state: FlowState) -> list[Receipt]:
    return [loss for loss in losses if acknowledgement(loss) not in state.acknowledged]


def acknowledge_losses(opened: OpenFlow) -> list[Receipt]:
    """Mark every open loss as seen; returns these losses."""
    flow, losses = opened.flow, open_losses(opened)
    append_records(opened.target, {flow.state_topic: [encode_state(acknowledgement(loss)) for loss in losses]})
    opened.anew()
    return losses


def acknowledgement(loss: Receipt) -> LossAcknowledged:
    """The state record that marks this loss as seen.

    It names the topic only if the source has no topic ids (before 2.8): without a name it would mark losses of other topics too.
    """
    topic = loss.topic if loss.source_topic_id == NO_ID else ""
    return LossAcknowledged(loss.source_topic_id, loss.partition, loss.upstream_start, topic)
