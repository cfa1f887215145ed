"""What a run does for the runs after it: it merges receipts and indexes losses, so that neither the ledger nor reading it grows with runs.

A run that follows does it at its beginning, beside its lanes, because another run may end it at any moment. All runs do it at their end.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any

from ferry import clock
from ferry.clusters.net.shared_connection import Asked
from ferry.config import Flow
from ferry.copying.fencing import RunLease
from ferry.copying.ledger_compaction import compact_ledger, is_due
from ferry.errors import FerryError, Superseded, count_of
from ferry.ledger import loss_index
from ferry.ledger.losses import index_losses
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.ledger.state import FlowRecord
from ferry.ledger.topic_ids import NO_ID

log = logging.getLogger(__name__)


def ask_held_ever(opened: OpenFlow) -> Asked[int]:
    """How many records the ledger has ever held."""
    return opened.target.reader().ask_end_offsets(opened.flow.ledger_topic).then(lambda ends: sum(ends.values()))


def keep_up(opened: OpenFlow, lease: RunLease, ledger_topic_id: str, held_ever: int, say: Callable[[str], None]) -> None:
    """Compact the ledger and index losses, each if it is due. `held_ever`: as of ask_held_ever. Superseded if a newer run took over."""
    for changes in _carried_out(opened, lease.record, ledger_topic_id, held_ever, say, confirm=lease.confirm):
        lease.write_record(**changes)


def _carried_out(
    opened: OpenFlow, record: FlowRecord, ledger_topic_id: str, held_ever: int, say: Callable[[str], None], *, confirm: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    """Does the work that is due, and returns the changes of the flow record. `confirm` raises if a newer run took over."""
    if is_due(held_ever, record):
        confirm()  # an older run must not take the compaction's transactional id from a newer one
        try:
            done = compact_ledger(opened)
        except Superseded as problem:
            confirm()  # if no newer run has taken over, another process compacts, and the next run may do it
            log.warning("another process compacts the ledger: %s", problem)
        else:
            # The next compaction is due by the records that are written after this one.
            held_ever = ask_held_ever(opened).answer()
            yield {"tidied": held_ever, "receipts": done.left}
            say(f"ledger: {count_of(len(done.replaced) + len(done.merged), 'receipt')} became {len(done.merged)}")
    # Without topic ids Ferry cannot see whether the ledger was deleted and created again.
    if ledger_topic_id not in {"", NO_ID} and loss_index.is_due(held_ever, record.losses):
        yield {"losses": index_losses(opened, record.losses, ledger_topic_id, held_ever)}


class UpkeepBeside:
    """The upkeep of a run that follows, in a thread beside the driver's, which looks after the lanes meanwhile.

    The thread does not use the lease: only the driver's thread does. If the upkeep fails, the run goes on, and tries again at its end.
    """

    def __init__(self, flow: Flow, ledger_topic_id: str, say: Callable[[str], None]) -> None:
        self._flow, self._ledger_topic_id, self._say = flow, ledger_topic_id, say
        self._changes: dict[str, Any] = {}
        self._thread: clock.Thread | None = None

    def look(self, lease: RunLease) -> None:
        """The first time, begin. Later, write what was done, if it has ended. Superseded if a newer run took over."""
        if self._thread is None:
            lease.confirm()
            self._thread = clock.Thread(target=self._work, args=(lease.record,), name="ferry-upkeep", daemon=True)
            self._thread.start()
        elif not self._thread.is_alive():
            self.end(lease)

    def _work(self, record: FlowRecord) -> None:
        try:
            with open_flow(self._flow) as opened:
                held_ever = ask_held_ever(opened).answer()
                for changes in _carried_out(opened, record, self._ledger_topic_id, held_ever, self._say, confirm=lambda: None):
                    self._changes |= changes
        except FerryError as problem:
            self._say(f"could not merge receipts or index losses; Ferry tries again at the end of the run: {problem}")

    def end(self, lease: RunLease) -> None:
        """Wait until it has ended, if it has begun, and write what was done. Superseded as of `look`."""
        if self._thread is not None:
            self._thread.join()
        changes, self._changes = self._changes, {}
        if changes:
            lease.write_record(**changes)
