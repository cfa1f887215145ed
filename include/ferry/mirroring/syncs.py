"""The syncs of a flow, in the order of a run: each stands alone, so that one that fails does not keep the others.

A sync is a function `(flow, dry_run) -> SyncOutcome`. It compares both sides, writes only what differs, names what it leaves out and what
failed, and raises only when it can do nothing at all. Whether it is wanted (its `*.enabled`) and due (its interval, "not more often than")
is decided here; when it was last done stands in the flow's state topic.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.internal_producer import append_records
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.copying.state import SYNC_KEY, SyncDone, encode_state, fold_state
from ferry.errors import FerryError
from ferry.mirroring.internal_topics import ensure_internal_topics
from ferry.mirroring.outcome import LISTED, SyncFailure, SyncOutcome
from ferry.policy.naming import state_topic
from ferry.reporting.runs_topic import RunSync, write_run_record

if TYPE_CHECKING:
    from ferry.config import Flow

Sync = Callable[["Flow", bool], SyncOutcome]


class SyncName(StrEnum):
    """What can be synced, in the order of a run."""

    TOPICS = "topics"
    CONFIGS = "configs"
    ACLS = "acls"
    HEARTBEAT = "heartbeat"
    OFFSET_SYNCS = "offset-syncs"
    CHECKPOINTS = "checkpoints"
    GROUPS = "groups"


@dataclass(frozen=True)
class _Entry:
    """Where a sync's function is, and which settings say whether and how often it is done."""

    function: str
    enabled: Callable[[Flow], bool] = lambda _: True
    interval: Callable[[Flow], int] = lambda _: 0
    key: str = ""


_SYNCS: Mapping[SyncName, _Entry] = {
    SyncName.TOPICS: _Entry("ferry.mirroring.topics:sync_topics"),
    SyncName.CONFIGS: _Entry(
        "ferry.mirroring.configs:sync_configs",
        lambda flow: flow.mirroring.sync_topic_configs_enabled,
        lambda flow: flow.mirroring.sync_topic_configs_interval,
        "sync.topic.configs",
    ),
    SyncName.ACLS: _Entry(
        "ferry.mirroring.acls:sync_acls",
        lambda flow: flow.mirroring.sync_topic_acls_enabled,
        lambda flow: flow.mirroring.sync_topic_acls_interval,
        "sync.topic.acls",
    ),
    SyncName.HEARTBEAT: _Entry(
        "ferry.mirroring.heartbeats:sync_heartbeat",
        lambda flow: flow.mirroring.emit_heartbeats_enabled,
        lambda flow: flow.mirroring.emit_heartbeats_interval,
        "emit.heartbeats",
    ),
    SyncName.OFFSET_SYNCS: _Entry(
        "ferry.mirroring.offset_syncs:sync_offset_syncs",
        lambda flow: flow.mirroring.emit_offset_syncs_enabled,
        key="emit.offset-syncs",
    ),
    SyncName.CHECKPOINTS: _Entry(
        "ferry.mirroring.checkpoints:sync_checkpoints",
        lambda flow: flow.mirroring.emit_checkpoints_enabled,
        lambda flow: flow.mirroring.emit_checkpoints_interval,
        "emit.checkpoints",
    ),
    SyncName.GROUPS: _Entry(
        "ferry.mirroring.group_offsets:sync_groups",
        lambda flow: flow.mirroring.sync_group_offsets_enabled,
        lambda flow: flow.mirroring.sync_group_offsets_interval,
        "sync.group.offsets",
    ),
}
# The copy's own preparation creates and grows topics.
AFTER_THE_COPY = tuple(name for name in SyncName if name is not SyncName.TOPICS)


def run_sync(flow: Flow, name: SyncName, *, run_id: str = "", dry_run: bool = False, on_request: bool = False) -> SyncOutcome:
    """Do one sync, if it is wanted and due. With a `run_id` its outcome is kept for that run's report.

    `on_request`: a person asked for it, so it is done whatever the settings and intervals say. Never raises a FerryError: a sync that could
    do nothing has failed as a whole.
    """
    began = time.monotonic()
    try:
        why_not = "" if on_request else not_now(flow, name)
        outcome = SyncOutcome(name.value, left_out=why_not) if why_not else _function(name)(flow, dry_run)
    except FerryError as problem:
        outcome = SyncOutcome(name.value, failed=(SyncFailure(f"sync {name.value}", type(problem).__name__, str(problem)),))
    outcome = replace(outcome, dry_run=dry_run, seconds=round(time.monotonic() - began, 3))
    if not dry_run:
        with ClusterAdmin(flow.target) as target:
            ensure_internal_topics(flow, target)
    if run_id:
        write_run_record(flow, RunSync(run_id, name.value, outcome.document(LISTED)))
    if not (dry_run or outcome.left_out or outcome.failed):
        done = SyncDone(name.value, time.time_ns() // 1_000_000, run_id)
        append_records(flow.target, state_topic(flow.source.alias), [encode_state(done)])
    return outcome


def not_now(flow: Flow, name: SyncName) -> str:
    """Why a run leaves this sync out: not enabled, or done too short a while ago; empty when it is to be done."""
    entry = _SYNCS[name]
    interval = entry.interval(flow)
    if not entry.enabled(flow):
        return f"{entry.key}.enabled=false"
    if interval < 0:
        return f"{entry.key}.interval.seconds={interval}"
    age = _age_seconds(flow, name) if interval else None
    return "" if age is None or age >= interval else f"done {age:.0f} s ago, {entry.key}.interval.seconds={interval}"


def _age_seconds(flow: Flow, name: SyncName) -> float | None:
    topic = state_topic(flow.source.alias)
    with InternalTopicReader(flow.target) as reader:
        entries = [(record.key, record.value) for record in reader.read(topic, complete=False) if record.key.startswith(SYNC_KEY)]
    done = fold_state(entries).syncs.get(name.value)
    return None if done is None else time.time() - done.finished / 1000


def _function(name: SyncName) -> Sync:
    module, _, function = _SYNCS[name].function.partition(":")
    found: Sync = getattr(importlib.import_module(module), function)
    return found
