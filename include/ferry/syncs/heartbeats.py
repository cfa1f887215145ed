"""Heartbeats: a record on the target says that the flow was alive, and by its copies how far clusters are from each other.

A run of A->B writes (A, B) to B's `heartbeats`. The copy `A.heartbeats` on B, from which MM2's clients know that A is upstream, comes from
A's own `heartbeats`, where MM2 lets the pair B->A write. Ferry runs enabled flows only, so a run of A->B writes (B, A) to A as well where
MM2 would: best effort, because read-only credentials on the source must suffice for everything that was not asked for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ferry.config.replicas import HEARTBEATS
from ferry.errors import FerryError, NotAuthorized
from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.syncs.mm2_topics import ensure_mm2_topic, write_mm2_records
from ferry.wire.internal_records import Heartbeat

if TYPE_CHECKING:
    from ferry.config import Cluster, Flow

NAME = "heartbeat"
KEY = "emit.heartbeats.enabled"


@dataclass
class _Done:
    changes: list[Change] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[SyncFailure] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def sync_heartbeat(flow: Flow, dry_run: bool) -> SyncOutcome:
    """Write the flow's heartbeat, and that of the other direction where MM2 would. Where there are two, they fail one by one."""
    done = _Done()
    reverse = flow.reverse_heartbeat
    # Both switched off: then a person asked for this sync, and means the flow's own heartbeat.
    if flow.mirroring.emit_heartbeats_enabled or reverse == "off":
        try:
            done.changes += _beat(flow, flow.target, flow.source, dry_run=dry_run)
        except FerryError as problem:
            if reverse == "off":
                raise
            done.failed.append(SyncFailure(f"heartbeat {flow.name}", type(problem).__name__, str(problem)))
    else:
        done.skipped.append(Skipped(f"heartbeat {flow.name}", f"{KEY}=false"))
    if reverse != "off":
        _reverse(flow, done, dry_run=dry_run)
    return SyncOutcome(NAME, tuple(done.changes), tuple(done.skipped), tuple(done.failed), tuple(done.notices))


def _reverse(flow: Flow, done: _Done, *, dry_run: bool) -> None:
    pair = f"{flow.target.alias}->{flow.source.alias}"
    try:
        done.changes += _beat(flow, flow.source, flow.target, dry_run=dry_run)
    except FerryError as problem:
        grant = "grant Create and Write on topic heartbeats there, or " if isinstance(problem, NotAuthorized) else ""
        advice = f"{grant}set {pair}.{KEY}=false"
        if flow.reverse_heartbeat == "asked":
            done.failed.append(SyncFailure(f"heartbeat {pair}", type(problem).__name__, f"{problem}; {advice}"))
        else:
            why = f"clients on {flow.target.alias} see no copy of it, and cannot tell that {flow.source.alias} is upstream"
            done.notices.append(f"no heartbeat {pair} on {flow.source.alias}: {why}: {problem}; {advice}")


def _beat(flow: Flow, on: Cluster, other: Cluster, *, dry_run: bool) -> list[Change]:
    """One heartbeat other -> on, written to cluster `on`."""
    topic = flow.policy.heartbeats_topic()
    changes = [*ensure_mm2_topic(on, topic, flow.wanted_replicas(HEARTBEATS), dry_run=dry_run, rights="Create, Write")]
    beat = Heartbeat(other.alias, on.alias, time.time_ns() // 1_000_000)
    if not dry_run:
        write_mm2_records(on, topic, [(beat.encode_key(), beat.encode_value())], timestamp=beat.timestamp)
    detail = f"{beat.source_cluster_alias}->{beat.target_cluster_alias} at {beat.timestamp}"
    return [*changes, Change(f"topic {topic} on {on.alias}", "write", detail)]
