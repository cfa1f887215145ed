"""Carrying out a sync: each stands alone, so that one that fails does not keep the others.

A sync is a function `(flow, dry_run) -> SyncOutcome`. It compares both sides, writes only what differs, names what it leaves out and what
failed, and raises only when it can do nothing at all. Whether it is wanted (its `*.enabled`) and due (its interval, "not more often than")
is decided here; when it was last done stands in the flow's state topic.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.internal_producer import append_records
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.errors import FerryError, NewerFormat
from ferry.ledger.formats import place_of
from ferry.ledger.reading import refuse_newer_state
from ferry.ledger.runs_topic import RunSync, write_run_record
from ferry.ledger.state import SYNC_KEY, SyncDone, encode_state, fold_state
from ferry.ledger.sync_outcome import LISTED, SyncFailure, SyncOutcome
from ferry.ledger.topics import ensure_internal_topics
from ferry.syncs.names import SYNCS, SyncName, not_enabled

if TYPE_CHECKING:
    from ferry.config import Flow

Sync = Callable[["Flow", bool], SyncOutcome]


def run_sync(
    flow: Flow, name: SyncName, *, run_id: str = "", dry_run: bool = False, on_request: bool = False, unless_disabled: bool = False
) -> SyncOutcome:
    """Do one sync, if it is wanted and due. With a `run_id` its outcome is kept for that run's report; raises when it cannot be.

    `on_request`: a person asked for it, so it is done whatever intervals and (but for `unless_disabled`) settings say. A sync that could
    do nothing has failed as a whole. Without a `run_id` never raises a FerryError: what was changed is told, and that it cannot be kept.
    """
    began = time.monotonic()
    try:
        refuse_newer_state(flow)
    except NewerFormat as problem:  # then nothing is written, not even the outcome
        return SyncOutcome(name.value, failed=(_whole(name, problem),), dry_run=dry_run)
    except FerryError:  # told below, by what the sync itself cannot do without
        pass
    try:
        why_not = not_enabled(flow, name) if on_request and unless_disabled else "" if on_request else not_now(flow, name)
        outcome = SyncOutcome(name.value, left_out=why_not) if why_not else _function(name)(flow, dry_run)
    except FerryError as problem:
        outcome = SyncOutcome(name.value, failed=(_whole(name, problem),))
    outcome = replace(outcome, dry_run=dry_run, seconds=round(time.monotonic() - began, 3))
    if dry_run or not_enabled(flow, name):
        return outcome
    try:
        _keep(flow, run_id, outcome)
    except FerryError as problem:
        if run_id:
            raise
        told = SyncFailure(f"sync {name.value}", type(problem).__name__, f"when it was done cannot be written down: {problem}")
        return replace(outcome, failed=(*outcome.failed, told))
    return outcome


def _whole(name: SyncName, problem: FerryError) -> SyncFailure:
    return SyncFailure(f"sync {name.value}", type(problem).__name__, str(problem))


def _keep(flow: Flow, run_id: str, outcome: SyncOutcome) -> None:
    if not run_id and (outcome.left_out or outcome.failed):
        return
    if not outcome.left_out:  # what is not due was done, so the topics are there
        with ClusterAdmin(flow.target) as target:
            ensure_internal_topics(flow, target)
    if run_id:
        write_run_record(flow, RunSync(run_id, outcome.sync, outcome.document(LISTED)))
    if not (outcome.left_out or outcome.failed):
        done = SyncDone(outcome.sync, time.time_ns() // 1_000_000, run_id)
        append_records(flow.target, flow.state_topic, [encode_state(done)])


def not_now(flow: Flow, name: SyncName) -> str:
    """Why a run leaves this sync out: not enabled, or done too short a while ago; empty when it is to be done.

    One that was done in the future, by a machine whose clock is ahead, is to be done: else it would wait for that moment too.
    """
    disabled = not_enabled(flow, name)
    if disabled:
        return disabled
    entry = SYNCS[name]
    interval = entry.interval(flow)
    age = _age_seconds(flow, name) if interval else None
    return "" if age is None or not 0 <= age < interval else f"done {age:.0f} s ago, {entry.key}.interval.seconds={interval}"


def _age_seconds(flow: Flow, name: SyncName) -> float | None:
    topic = flow.state_topic
    with InternalTopicReader(flow.target) as reader:
        entries = [(record.key, record.value) for record in reader.read(topic, complete=False) if record.key.startswith(SYNC_KEY)]
    done = fold_state(entries, place_of(flow.target, topic)).syncs.get(name.value)
    return None if done is None else time.time() - done.finished / 1000


def _function(name: SyncName) -> Sync:
    module, _, function = SYNCS[name].function.partition(":")
    found: Sync = getattr(importlib.import_module(module), function)
    return found
