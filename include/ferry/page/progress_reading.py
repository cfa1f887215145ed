"""Reads how far the newest run is, by the receipts of its transactions. It asks only for the runs topic and the ledger, so it is quick.

The receipts of a first copy of hours are many: each look reads on where the one before it in this process ended.
"""

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.config import Flow
from ferry.copying.committed import Committed
from ferry.copying.request import LATEST
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import open_flow
from ferry.ledger.receipts import ReceiptKind, decode_receipt, run_of
from ferry.ledger.runs_topic import RunOpened, following, follows, read_recent_runs

# For a run that follows, only receipts of this time are read: it has too many.
FOLLOWED_SECONDS = 60.0


@dataclass
class _Known:
    """The receipts read so far of a run that does not follow. `positions`: where the next look begins, by partition of the ledger."""

    run_id: str
    positions: dict[int, int]
    committed: Committed = field(default_factory=Committed)


# By flow.
_known: dict[str, _Known] = {}


def read_progress(flow: Flow) -> dict[str, Any]:
    """The result of progress_of; nothing for a flow that never ran. A run that follows may go on after a newer one has ended."""
    topic, now = flow.ledger_topic, time.time()
    with open_flow(flow) as opened:
        runs = read_recent_runs(opened)
        newest = next(reversed(runs.values()), None)
        run = None if newest is None else newest.opened if newest.result is None else following(runs, now) or newest.opened
        if run is None:
            return {}
        known = _known.get(flow.name)
        if known is None or known.run_id != run.run_id or follows(run, now):
            known = _known[flow.name] = _Known(run.run_id, {**run.ledger_ends}, Committed(follows=follows(run, now)))
        reader = opened.target.reader()
        since = reader.offsets_at(topic, round((now - FOLLOWED_SECONDS) * 1000)) if known.committed.follows else known.positions
        read = list(reader.read(topic, since, complete=False))
    known.positions |= {record.partition: record.offset + 1 for record in read}
    found = {(record.key, run_of(record.value)): record for record in read if record.value}
    over = runs[run.run_id].result is not None
    return progress_of(run, found.values(), place_of(flow.target, topic), now, over=over, committed=known.committed)


def progress_of(
    run: RunOpened, records: Iterable[InternalRecord], where: str, now: float, *, over: bool, committed: Committed
) -> dict[str, Any]:
    """How far a run is by records of the ledger, which are added to `committed`. `over`: it has ended. `progress`: a Progress that does not
    say what is left.

    `reached`: (topic, partition, next upstream offset) of the partitions that it copied in order. `whole`: it copies all that the source
    has of `topics` (empty: all). For a run that follows, `progress` counts no records, and the newest commits are those of any run of the
    flow.
    """
    own = json.dumps(run.run_id).encode()
    for record in records:
        if record.value and (committed.follows or run_of(record.value) == own):
            committed.add(decode_receipt(record.key, record.value, where), record.timestamp / 1000)
    told = asdict(committed.progress(now)) | (dict.fromkeys(("records", "rate", "bytes_rate")) if committed.follows else {})
    reached = [(*key, receipt.upstream_end) for key, receipt in committed.newest.items() if receipt.kind is ReceiptKind.COPIED]
    return {"run_id": run.run_id, "over": over, "progress": told, "reached": reached, "whole": run.bound == LATEST, "topics": run.topics}
