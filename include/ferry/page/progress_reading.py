"""Reads how far the newest run is, by the receipts of its transactions. It asks only for the runs topic and the ledger, so it is quick."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from ferry.clusters.internal_reader import InternalRecord, InternalTopicReader
from ferry.clusters.kept import kept_clients
from ferry.config import Flow
from ferry.copying.committed import Committed
from ferry.copying.request import LATEST
from ferry.ledger.formats import place_of
from ferry.ledger.receipts import ReceiptKind, decode_receipt, run_of
from ferry.ledger.runs_topic import RunOpened, RunRecords, follows, read_recent_runs

# Of a run that follows, only what was committed in this time is read: its receipts are too many.
FOLLOWED_SECONDS = 60.0
NEVER_RAN: Mapping[str, Any] = {"run_id": "", "over": True}


def read_progress(flow: Flow) -> dict[str, Any]:
    """As of progress_of."""
    topic = flow.ledger_topic
    with kept_clients():
        now = time.time()
        name, run = newest_run(read_recent_runs(flow), now)
        if run.opened is None:
            return dict(NEVER_RAN)
        with InternalTopicReader(flow.target) as reader:
            recent = follows(run.opened, now)
            since = reader.offsets_at(topic, round((now - FOLLOWED_SECONDS) * 1000)) if recent else run.opened.ledger_ends
            found = {(record.key, run_of(record.value)): record for record in reader.read(topic, since, complete=False) if record.value}
    return progress_of(name, run.opened, found.values(), place_of(flow.target, topic), now, over=run.result is not None)


def progress_of(name: str, run: RunOpened, records: Iterable[InternalRecord], where: str, now: float, *, over: bool) -> dict[str, Any]:
    """How far a run is by records of the ledger (pure). `over`: it has ended. `progress`: a Progress that does not say what is left.

    `reached`: (topic, partition, next upstream offset) of what it copied in order. `whole`: it copies all that the source has, of `topics`
    (empty: all). Of a run that follows, `progress` counts no records, and the newest commits are those of the flow, whatever run made them.
    """
    own, committed = json.dumps(name).encode(), Committed(follows=follows(run, now))
    for record in records:
        if record.value and (committed.follows or run_of(record.value) == own):
            committed.add(decode_receipt(record.key, record.value, where), record.timestamp / 1000)
    progress = committed.progress(now)
    if committed.follows:
        progress = replace(progress, records=None, rate=None, bytes_rate=None)
    reached = [(*key, receipt.upstream_end) for key, receipt in committed.newest.items() if receipt.kind is ReceiptKind.COPIED]
    bounds = {"whole": run.bound == LATEST, "topics": list(run.topics)}
    return {"run_id": name, "over": over, "progress": asdict(progress), "reached": reached, **bounds}


def newest_run(runs: Mapping[str, RunRecords], now: float) -> tuple[str, RunRecords]:
    """The run that copies now, or the last one that did (pure). A run that follows may go on after a newer one has ended."""
    before, newest = [("", RunRecords()), ("", RunRecords()), *runs.items()][-2:]
    goes_on = before[1].result is None and before[1].opened is not None and follows(before[1].opened, now)
    return before if goes_on and newest[1].result is not None else newest
