"""The summary of a ledger: every loss and the sizes of records, while only losses are read whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.internal_producer import append_records
from ferry.config import Flow
from ferry.copying import ledger_summary
from ferry.copying.ledger_summary import read_ledger_summary
from ferry.copying.receipts import REFUSED, Receipt, ReceiptKind, decode_receipt, encode_receipt
from ferry.errors import NewerFormat
from ferry.mirroring.internal_topics import ensure_internal_topics
from ferry.policy.naming import ledger_topic
from ferry.recovery.losses import acknowledge_losses, open_losses

pytestmark = pytest.mark.brokers

COPIED = Receipt(ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", 0, 10, downstream_end=10, runs=((0, 0, 10),), records=10, bytes=500)
LOST = Receipt(ReceiptKind.LOSS, "t", 0, "s", "A.t", "r", 10, 20, reason='gone; the "log" began at 20')
REFUSAL = Receipt(ReceiptKind.SKIPPED, "t", 1, "s", "A.t", "r", 3, 4, reason=f"{REFUSED}: too large")
TAKEN_BACK = replace(LOST, upstream_start=40, upstream_end=50)


def test_losses_and_sizes_of_a_ledger(flow_factory: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch) -> None:
    flow = flow_factory()
    topic = ledger_topic(flow.source.alias)
    with ClusterAdmin(flow.target) as target:
        ensure_internal_topics(flow, target)
    copies = [replace(COPIED, upstream_start=start, upstream_end=start + 10) for start in range(100, 1_100, 10)]
    others = [replace(COPIED, partition=1, bytes=100), replace(REFUSAL, upstream_start=8, reason="gone when the backfill came")]
    written = [encode_receipt(receipt) for receipt in (*copies, *others, LOST, REFUSAL, TAKEN_BACK)]
    append_records(flow.target, topic, [*written, (encode_receipt(TAKEN_BACK)[0], None)], partition=0)
    read_whole: list[bytes] = []

    def counting(key: bytes, value: bytes, where: str) -> Receipt:
        read_whole.append(key)
        return decode_receipt(key, value, where)

    monkeypatch.setattr(ledger_summary, "decode_receipt", counting)
    found = read_ledger_summary(flow)
    assert (set(found.losses), found.sizes) == ({LOST, REFUSAL}, {("t", 0): 50.0, ("t", 1): 10.0})
    assert len(read_whole) == 4
    assert set(open_losses(flow)) == set(acknowledge_losses(flow)) == {LOST, REFUSAL}
    assert open_losses(flow) == []
    append_records(flow.target, topic, [(written[0][0], written[0][1].replace(b'"version":1', b'"version":2'))], partition=0)
    with pytest.raises(NewerFormat):
        read_ledger_summary(flow)
