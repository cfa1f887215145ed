"""`ferry ack-loss`: an operator has seen the losses. They stay in the ledger, and `ferry status` no longer counts them."""

from collections.abc import Iterable

from ferry.clusters.internal_producer import append_records
from ferry.clusters.leaders import NO_TOPIC_ID
from ferry.config import Flow
from ferry.ledger.losses import read_losses
from ferry.ledger.reading import read_own_state
from ferry.ledger.receipts import Receipt
from ferry.ledger.state import FlowState, LossAcknowledged, encode_state


def open_losses(flow: Flow) -> list[Receipt]:
    """Losses of the ledger that nobody has acknowledged; records that the target refused count too."""
    state = read_own_state(flow, settled=False)
    return unacknowledged(read_losses(flow, state.flow.losses if state.flow else None).losses, state)


def unacknowledged(losses: Iterable[Receipt], state: FlowState) -> list[Receipt]:
    """Those of `losses` that nobody has acknowledged (pure)."""
    return [loss for loss in losses if acknowledgement(loss) not in state.acknowledged]


def acknowledge_losses(flow: Flow) -> list[Receipt]:
    """Mark every open loss as seen; returns these losses."""
    losses = open_losses(flow)
    append_records(flow.target, flow.state_topic, [encode_state(acknowledgement(loss)) for loss in losses])
    return losses


def acknowledgement(loss: Receipt) -> LossAcknowledged:
    """The state record that marks this loss as seen.

    It names the topic only where the source has no topic ids (before 2.8): without a name it would mark losses of other topics too.
    """
    topic = loss.topic if loss.source_topic_id == str(NO_TOPIC_ID) else ""
    return LossAcknowledged(loss.source_topic_id, loss.partition, loss.upstream_start, topic)
