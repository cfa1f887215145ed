"""Heartbeats: a record on the target says that the flow was alive. Its copies on other clusters tell how many hops away a cluster is.

A run of A->B writes the heartbeat (A, B) to the topic `heartbeats` of B. MM2's clients on B know from `A.heartbeats` that A is upstream.
That is a copy of `heartbeats` on A, to which MM2 writes by the pair B->A. Ferry runs enabled flows only, so a run of A->B also writes (B,
A) to A where MM2 would. This second heartbeat is best effort: read-only credentials on the source must suffice for what was not asked for.
"""

import time
from dataclasses import dataclass, field

from ferry.clusters.internal_producer import append_records
from ferry.config import Cluster, Flow
from ferry.config.replicas import HEARTBEATS
from ferry.errors import FerryError, NotAuthorized
from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.syncs.context import SyncContext
from ferry.syncs.mm2_topics import PARTITION, ensure_mm2_topic
from ferry.wire.internal_records import Heartbeat

NAME = "heartbeat"
KEY = "emit.heartbeats.enabled"


@dataclass
class _Outcome:
    changes: list[Change] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[SyncFailure] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def sync_heartbeat(context: SyncContext) -> SyncOutcome:
    """Write the flow's heartbeat, and that of the other direction where MM2 would. If one of the two fails, the other is still written."""
    flow, dry_run = context.flow, context.dry_run
    done = _Outcome()
    reverse = flow.reverse_heartbeat
    # If both are switched off, a person has asked for this sync, and wants the flow's own heartbeat.
    if flow.mirroring.emit_heartbeats_enabled or reverse == "off":
        try:
            done.changes += _beat(flow, flow.target, flow.source, dry_run=dry_run)
        except FerryError as problem:
            if reverse == "off":
                raise
            done.failed.append(SyncFailure.of(f"heartbeat {flow.name}", problem))
    else:
        done.skipped.append(Skipped(f"heartbeat {flow.name}", f"{KEY}=false"))
    if reverse != "off":
        _reverse(flow, done, dry_run=dry_run)
    return SyncOutcome(NAME, tuple(done.changes), tuple(done.skipped), tuple(done.failed), tuple(done.notices))


def _reverse(flow: Flow, done: _Outcome, *, dry_run: bool) -> None:
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
        append_records(on, topic, [(beat.encode_key(), beat.encode_value())], partition=PARTITION, timestamp=beat.timestamp)
    detail = f"{beat.source_cluster_alias}->{beat.target_cluster_alias} at {beat.timestamp}"
    return [*changes, Change(f"topic {topic} on {on.alias}", "write", detail)]
