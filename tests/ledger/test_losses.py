"""The losses of a ledger: all of them are found, only they are read whole, and by an index little else is read at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from tests.conftest import Lab
from tests.opened import acknowledge_losses, administration, append_records, flow_status, index_losses, open_losses, read_losses

from ferry.clusters.logs import internal_reader
from ferry.clusters.logs.internal_reader import InternalRecord, InternalTopicReader
from ferry.clusters.logs.leader_epochs import ReadTo, same_logs
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import Flow
from ferry.errors import NewerFormat
from ferry.ledger import loss_index
from ferry.ledger import losses as ledger_losses
from ferry.ledger.counters import Counters
from ferry.ledger.receipts import REFUSED, Receipt, ReceiptKind, decode_receipt, encode_receipt
from ferry.ledger.topics import ensure_internal_topics

pytestmark = pytest.mark.brokers

COPIED = Receipt(
    ReceiptKind.COPIED,
    "t",
    0,
    "s",
    "A.t",
    "r",
    0,
    10,
    downstream_end=10,
    runs=((0, 0, 10),),
    counters=Counters(10, 500, 1),
)
LOST = Receipt(ReceiptKind.LOSS, "t", 0, "s", "A.t", "r", 10, 20, reason='gone; the "log" began at 20')
REFUSAL = Receipt(ReceiptKind.SKIPPED, "t", 1, "s", "A.t", "r", 3, 4, reason=f"{REFUSED}: too large")
TAKEN_BACK = replace(LOST, upstream_start=40, upstream_end=50)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Offsets of the ledger's records that any reader was given."""
    offsets: list[int] = []
    real = InternalTopicReader._from

    def counting(*arguments: Any, **options: Any) -> Iterator[tuple[str, InternalRecord]]:
        for topic, record in real(*arguments, **options):
            offsets.extend([record.offset] if "ledger" in topic else [])
            yield topic, record

    monkeypatch.setattr(InternalTopicReader, "_from", counting)
    return offsets


def copies(start: int, number: int) -> list[tuple[bytes, bytes]]:
    return [encode_receipt(replace(COPIED, upstream_start=at, upstream_end=at + 10)) for at in range(start, start + 10 * number, 10)]


def test_losses_of_a_ledger(flow_factory: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch) -> None:
    flow = flow_factory()
    topic = flow.ledger_topic
    with administration(flow.target) as target:
        ensure_internal_topics(flow, target)
    gone = replace(REFUSAL, upstream_start=8, reason="gone when the backfill came")
    written = [*copies(100, 100), *(encode_receipt(receipt) for receipt in (gone, LOST, REFUSAL, TAKEN_BACK))]
    append_records(flow.target, {topic: [*written, (encode_receipt(TAKEN_BACK)[0], None)]}, partition=0)
    read_whole: list[bytes] = []

    def counting(key: bytes, value: bytes, where: str) -> Receipt:
        read_whole.append(key)
        return decode_receipt(key, value, where)

    monkeypatch.setattr(loss_index, "decode_receipt", counting)
    assert set(read_losses(flow, None).losses) == {LOST, REFUSAL}
    assert len(read_whole) == 4
    assert set(open_losses(flow)) == set(acknowledge_losses(flow)) == {LOST, REFUSAL}
    assert open_losses(flow) == []
    append_records(flow.target, {topic: [(written[0][0], written[0][1].replace(b'"version":1', b'"version":2'))]}, partition=0)
    with pytest.raises(NewerFormat):
        read_losses(flow, None)


def test_by_an_index_only_losses_and_what_is_new_are_read(
    flow_factory: Callable[..., Flow], looked_at: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the index was made for another ledger of that name, or for what an unclean election has cut off since."""
    monkeypatch.setattr(internal_reader, "READ_ON", 5)
    flow = flow_factory()
    topic = flow.ledger_topic
    losses = [replace(LOST, upstream_start=start) for start in (7, 8, 9)]
    first, second, third = (encode_receipt(loss) for loss in losses)
    with administration(flow.target) as target:
        ensure_internal_topics(flow, target)
        ledger = target.topics()[topic]
    append_records(flow.target, {topic: [first, *copies(0, 50), second, *copies(500, 50), third, *copies(1_000, 50)]}, partition=0)
    append_records(flow.target, {topic: [encode_receipt(REFUSAL), *copies(9_000, 1)]}, partition=ledger.partitions - 1)
    index = index_losses(flow, None, ledger.topic_id or "", 155)
    assert [(share.read_to, share.losses) for share in index.shares] == [(153, (0, 51, 102)), (2, (0,))]
    append_records(flow.target, {topic: [*copies(1_500, 2), (first[0], None)]}, partition=0)
    del looked_at[:]
    assert sorted(loss.upstream_start for loss in read_losses(flow, index).losses) == [3, 8, 9]
    assert sorted(looked_at) == [0, 0, 51, 102, 153, 154, 155]

    beyond = replace(index, shares=(replace(index.shares[0], read_to=900), replace(index.shares[1], epoch=9)))
    of_another = replace(index, ledger_topic_id="11111111-1111-1111-1111-111111111111")
    for wrong in (beyond, of_another):
        del looked_at[:]
        assert len(read_losses(flow, wrong).losses) == 3
        assert len(looked_at) == 158


def test_a_log_that_is_cut_off_while_it_is_indexed_is_not_indexed(
    flow_factory: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brokers are real ones; only what leader epochs say of the end of the older index changes behind the first look."""
    flow = flow_factory()
    topic = flow.ledger_topic
    with administration(flow.target) as target:
        ensure_internal_topics(flow, target)
        ledger = target.topics()[topic].topic_id or ""
    for partition in (0, 1):
        append_records(flow.target, {topic: copies(0, 10)}, partition=partition)
    older = index_losses(flow, None, ledger, 20)
    append_records(flow.target, {topic: copies(100, 10)}, partition=0)
    looks, ask = list[object](), same_logs

    def cut_off(cluster: OpenCluster, wanted: Mapping[TopicPartition, ReadTo], ids: Mapping[str, UUID]) -> set[TopicPartition]:
        looks.append(wanted)
        behind = {key for key in ask(cluster, wanted, ids) if key.partition != 0 or wanted[key].offset > 10}
        return behind if looks[1:] else ask(cluster, wanted, ids)

    monkeypatch.setattr(ledger_losses, "same_logs", cut_off)
    assert [share.partition for share in older.shares] == [0, 1]
    assert [share.partition for share in index_losses(flow, older, ledger, 30).shares] == [1]


def test_a_second_status_does_not_read_what_a_run_has_indexed(lab: Lab, looked_at: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferry.ledger.loss_index.NEW_RECORDS", 1)
    name = lab.topic(lab.source, partitions=3)
    flow = lab.flow(f"A->B.topics = {name}")
    for count in range(5, 15):
        for partition in range(3):
            lab.produce(lab.source, name, [(partition, b"k", b"x" * 200)] * count)
        lab.run(flow)
        del looked_at[:]
        before = flow_status(flow)
        if not looked_at:  # else a marker of the run's own transactions came after the run had indexed the ledger
            break
    assert (looked_at, before.losses) == ([], ())
    lab.produce(lab.source, name, [(0, b"k", b"x" * 200)])
    (lagging,) = (entry for entry in flow_status(flow).partitions if entry.lag_records)
    assert lagging.lag_bytes > 0
