"""Reads the losses of a ledger. With an index it reads only known losses and new receipts. Only losses are kept in memory."""

from dataclasses import replace
from uuid import UUID

from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.leader_epochs import ReadTo, same_logs
from ferry.clusters.partitions import TopicPartition
from ferry.config import Flow
from ferry.ledger.formats import place_of
from ferry.ledger.loss_index import IndexedShare, LossFold, LossIndex


def read_losses(flow: Flow, index: LossIndex | None, *, complete: bool = True) -> LossFold:
    """Every loss in the ledger now. `complete`: as in InternalTopicReader.read. `index`: of the flow record.

    Errors as in InternalTopicReader.read and decode_receipt.
    """
    topic = flow.ledger_topic
    fold = LossFold(_standing(flow, index), place_of(flow.target, topic))
    with InternalTopicReader(flow.target) as reader:
        for record in reader.records_at(topic, fold.listed):
            fold.add(record)
        for record in reader.read(topic, fold.starts, complete=complete):
            fold.add(record)
    return fold


def index_losses(flow: Flow, index: LossIndex | None, ledger_topic_id: str, held_ever: int) -> LossIndex:
    """The updated index, up to the first open transaction.

    `ledger_topic_id`: read before; the index of a ledger that was replaced meanwhile has this old id, and so is not used.
    """
    read = read_losses(flow, index, complete=False)
    made = read.index(ledger_topic_id, held_ever)
    # An unclean election may have truncated a log below `index` since it was checked: then new records there were not read.
    cut_off = read.starts.keys() - {share.partition for share in _standing(flow, index)}
    return replace(made, shares=tuple(share for share in _standing(flow, made) if share.partition not in cut_off))


def _standing(flow: Flow, index: LossIndex | None) -> tuple[IndexedShare, ...]:
    """The valid part of the index: of the same topic, and of logs that no unclean election has truncated below what was read."""
    if index is None:
        return ()
    topic = flow.ledger_topic
    places = {TopicPartition(topic, share.partition): share for share in index.shares}
    read = {key: ReadTo(share.read_to, share.epoch) for key, share in places.items()}
    same = same_logs(flow.target, read, {topic: UUID(index.ledger_topic_id)})
    return tuple(share for key, share in places.items() if key in same)
