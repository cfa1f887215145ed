"""Heartbeats: a record on the target says that the flow was alive. Its copies on other clusters show how many hops away a cluster is.

A run of A->B writes the heartbeat (A, B) to the topic `heartbeats` of B. MM2's clients on B know from the topic `A.heartbeats` that A is
upstream. That is a copy of `heartbeats` on A, to which MM2 writes for the pair B->A even if that flow is not enabled. Ferry runs enabled
flows only. So a run of A->B also writes (B, A) to A if MM2 would do so. If Ferry cannot write this second heartbeat, the sync fails only if
the config asks for it: a user who may only read on the source must be able to run the flow.
"""

from dataclasses import replace

from ferry import clock
from ferry.clusters.logs.internal_producer import append_records
from ferry.config import Cluster
from ferry.config.mm2_topics import heartbeats_topic
from ferry.errors import FerryError, NotAuthorized
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.syncs.mm2_topics import PARTITION, ensure_mm2_topic
from ferry.wire.internal_records import Heartbeat

KEY = "emit.heartbeats.enabled"


def sync_heartbeat(opened: OpenFlow, *, dry_run: bool = False) -> SyncOutcome:
    """Write the flow's heartbeat, and that of the other direction where MM2 would. If one of the two fails, the other is still written."""
    flow, reverse = opened.flow, opened.flow.reverse_heartbeat
    done = SyncOutcome(skipped=(Skipped(f"heartbeat {flow.name}", f"{KEY}=false"),))
    # If both are switched off, a person has asked for this sync, and wants the flow's own heartbeat.
    if flow.mirroring.emit_heartbeats_enabled or reverse == "off":
        try:
            done = SyncOutcome(_beat(opened, flow.target, flow.source, dry_run=dry_run))
        except FerryError as problem:
            if reverse == "off":
                raise
            done = SyncOutcome(failed=(SyncFailure.of(f"heartbeat {flow.name}", problem),))
    return done if reverse == "off" else _reverse(opened, done, dry_run=dry_run)


def _reverse(opened: OpenFlow, done: SyncOutcome, *, dry_run: bool) -> SyncOutcome:
    flow, pair = opened.flow, opened.flow.reverse_name
    try:
        return replace(done, changes=(*done.changes, *_beat(opened, flow.source, flow.target, dry_run=dry_run)))
    except FerryError as problem:
        grant = "grant Create and Write on topic heartbeats there, or " if isinstance(problem, NotAuthorized) else ""
        advice = f"{grant}set {pair}.{KEY}=false"
        if flow.reverse_heartbeat == "asked":
            return replace(done, failed=(*done.failed, SyncFailure(f"heartbeat {pair}", type(problem).__name__, f"{problem}; {advice}")))
        why = f"clients on {flow.target.alias} see no copy of it, and cannot tell that {flow.source.alias} is upstream"
        return replace(done, notices=(f"no heartbeat {pair} on {flow.source.alias}: {why}: {problem}; {advice}",))


def _beat(opened: OpenFlow, on: Cluster, other: Cluster, *, dry_run: bool) -> tuple[Change, ...]:
    """One heartbeat other -> on, written to cluster `on`."""
    topic = heartbeats_topic(opened.flow, on)
    changes = ensure_mm2_topic(opened, topic, dry_run=dry_run)
    beat = Heartbeat(other.alias, on.alias, clock.time_ms())
    if not dry_run:
        append_records(
            opened.side(on), {topic.name: [(beat.encode_key(), beat.encode_value())]}, partition=PARTITION, timestamp=beat.timestamp
        )
    detail = f"{beat.source_cluster_alias}->{beat.target_cluster_alias} at {beat.timestamp}"
    return (*changes, Change(f"topic {topic.name} on {on.alias}", "write", detail))
