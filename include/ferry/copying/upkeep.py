"""What a run does for the runs after it: it merges receipts and indexes losses, so that neither the ledger nor reading it grows with runs.

A run that follows does it at its beginning, beside its lanes, because another run may end it at any moment. Other runs do it at their end.
"""

import logging
from collections.abc import Callable

from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.shared_connection import Asked
from ferry.config import Flow
from ferry.copying.fencing import RunLease
from ferry.copying.ledger_compaction import compact_ledger, is_due
from ferry.errors import Superseded
from ferry.ledger import loss_index
from ferry.ledger.losses import index_losses
from ferry.ledger.topic_ids import NO_ID

log = logging.getLogger(__name__)


def ask_held_ever(flow: Flow) -> Asked[int]:
    """How many records the ledger has ever held."""
    return InternalTopicReader(flow.target).ask_end_offsets(flow.ledger_topic).then(lambda ends: sum(ends.values()))


def keep_up(flow: Flow, lease: RunLease, ledger_topic_id: str, held_ever: int, say: Callable[[str], None]) -> None:
    """Compact the ledger and index losses, each if it is due. `held_ever`: as of ask_held_ever. Superseded if a newer run took over."""
    held_ever = _compact_ledger(flow, lease, held_ever, say)
    # Without topic ids Ferry cannot tell whether the ledger was deleted and created again.
    if ledger_topic_id not in {"", NO_ID} and loss_index.is_due(held_ever, lease.record.losses):
        lease.write_record(losses=index_losses(flow, lease.record.losses, ledger_topic_id, held_ever))


def _compact_ledger(flow: Flow, lease: RunLease, held_ever: int, say: Callable[[str], None]) -> int:
    """Returns how many records the ledger has ever held then."""
    if not is_due(held_ever, lease.record):
        return held_ever
    lease.confirm()  # an older run must not take the compaction's transactional id from a newer one
    try:
        done = compact_ledger(flow)
    except Superseded as problem:
        lease.confirm()  # raises if a newer run has taken over; else another process compacts, and the next run may do it
        log.warning("another process compacts the ledger: %s", problem)
        return held_ever
    # The next compaction is due by the records that are written after this one.
    held_ever = ask_held_ever(flow).answer()
    lease.write_record(tidied=held_ever, receipts=done.left)
    say(f"ledger: {len(done.replaced) + len(done.merged)} receipts became {len(done.merged)}")
    return held_ever
