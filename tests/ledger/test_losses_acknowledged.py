"""Which losses an operator's word is about."""

from __future__ import annotations

import pytest

from ferry.clusters.net.leaders import NO_TOPIC_ID
from ferry.ledger.losses import acknowledgement, unacknowledged
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.state import LossAcknowledged, encode_state, fold_state

pytestmark = pytest.mark.unit

IDS = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"


def loss(topic: str, topic_id: str) -> Receipt:
    return Receipt(ReceiptKind.LOSS, topic, 0, topic_id, f"A.{topic}", "r", 0, 5)


@pytest.mark.parametrize("ids", [IDS, (str(NO_TOPIC_ID),) * 2], ids=["by topic id", "a source older than topic ids"])
def test_acknowledging_a_loss_of_one_topic_leaves_those_of_others(ids: tuple[str, str]) -> None:
    seen, new = loss("orders", ids[0]), loss("clicks", ids[1])
    state = fold_state([encode_state(acknowledgement(seen))])
    assert unacknowledged([seen, new], state) == [new]


def test_a_loss_that_was_acknowledged_without_its_topic_is_open_again() -> None:
    """Of a source without topic ids, by an earlier release: whose loss was meant is not known."""
    state = fold_state([encode_state(LossAcknowledged(str(NO_TOPIC_ID), 0, 0))])
    assert unacknowledged([loss("orders", str(NO_TOPIC_ID))], state) == [loss("orders", str(NO_TOPIC_ID))]
