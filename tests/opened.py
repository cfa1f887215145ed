"""What works on an open flow, for tests that have a flow: each call opens the flow and closes it again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ferry.clusters.admin import acls as acls_of_cluster
from ferry.clusters.admin import api_versions
from ferry.clusters.groups.consumer_groups import ConsumerGroups
from ferry.clusters.logs import internal_producer
from ferry.clusters.logs.internal_reader import InternalTopicReader
from ferry.clusters.net.shared_connection import ConnectedCluster
from ferry.clusters.open_cluster import Administration, OpenClusters, open_cluster
from ferry.config import Cluster, Flow
from ferry.copying import fencing, lane_runner, ledger_compaction, snapshot
from ferry.copying.fencing import FencedWriter, RunLease
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask
from ferry.copying.request import RunRequest
from ferry.doctor import cluster_facts, flow_facts
from ferry.ledger import losses, reading, recovery_record, runs_topic
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.ledger.state import FlowState, SyncDone
from ferry.ledger.sync_outcome import SyncOutcome
from ferry.migration import exporting, mm2_positions, positions, seeding
from ferry.monitoring import status
from ferry.pipeline import report_reading, run, run_plan, syncs
from ferry.recovery import not_copied
from ferry.syncs import (
    acls,
    checkpoints,
    configs,
    group_explanation,
    group_offsets,
    heartbeats,
    offset_syncs,
    source_group,
    topics,
)
from ferry.syncs import translated_groups as translating
from ferry.syncs.names import SyncName
from ferry.verify import evidence, undeleted, verifying


def _opening(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def opens(flow: Flow, *arguments: Any, **options: Any) -> Any:
        with open_flow(flow) as opened:
            return function(opened, *arguments, **options)

    return opens


def _on_cluster(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def opens(cluster: Cluster, *arguments: Any, **options: Any) -> Any:
        with open_cluster(cluster) as opened:
            return function(opened, *arguments, **options)

    return opens


append_records = _on_cluster(internal_producer.append_records)
ask_capabilities = _on_cluster(api_versions.ask_capabilities)
ask_cluster = _on_cluster(ConnectedCluster.ask)
lacking = _on_cluster(api_versions.lacking)
read_acls = _on_cluster(acls_of_cluster.read_acls)
read_cluster_facts = _on_cluster(cluster_facts.read_cluster_facts)
acknowledge_losses = _opening(losses.acknowledge_losses)
assemble_report = _opening(report_reading.assemble_report)
compact_ledger = _opening(ledger_compaction.compact_ledger)
copied = _opening(run.copied)
declare_foreign = _opening(seeding.declare_foreign)
explain_group = _opening(group_explanation.explain_group)
export_offsets = _opening(exporting.export_offsets)
flow_status = _opening(status.flow_status)
index_losses = _opening(losses.index_losses)
keep_lag = _opening(report_reading.keep_lag)
keep_run = _opening(report_reading.keep_run)
lacking_features = _opening(snapshot.lacking_features)
open_losses = _opening(losses.open_losses)
plan_run = _opening(run_plan.plan_run)
read_connect_offsets = _opening(mm2_positions.read_connect_offsets)
read_evidence = _opening(evidence.read_evidence)
read_flow_facts = _opening(flow_facts.read_flow_facts)
read_group_positions = _opening(positions.read_group_positions)
read_losses = _opening(losses.read_losses)
read_mm2_positions = _opening(mm2_positions.read_mm2_positions)
read_receipts = _opening(reading.read_receipts)
read_recovery = _opening(recovery_record.read_recovery)
read_run_records = _opening(runs_topic.read_run_records)
read_writers = _opening(fencing.read_writers)
seed = _opening(seeding.seed)
source_ends = _opening(not_copied.source_ends)
status_after_run = _opening(status.status_after_run)
sync_acls = _opening(acls.sync_acls)
sync_checkpoints = _opening(checkpoints.sync_checkpoints)
sync_configs = _opening(configs.sync_configs)
sync_groups = _opening(group_offsets.sync_groups)
sync_heartbeat = _opening(heartbeats.sync_heartbeat)
sync_offset_syncs = _opening(offset_syncs.sync_offset_syncs)
sync_source_group = _opening(source_group.sync_source_group)
sync_topics = _opening(topics.sync_topics)
translated_groups = _opening(translating.translated_groups)
verify = _opening(verifying.verify)
write_tombstones = _opening(undeleted.write_tombstones)


def not_opened(flow: Flow) -> OpenFlow:
    """For tests that ask no cluster."""
    return OpenFlow(flow, OpenClusters())


@contextmanager
def administration(cluster: Cluster) -> Iterator[Administration]:
    with open_cluster(cluster) as opened:
        yield opened.admin


@contextmanager
def topic_reader(cluster: Cluster) -> Iterator[InternalTopicReader]:
    with open_cluster(cluster) as opened:
        yield opened.reader()


@contextmanager
def open_groups(cluster: Cluster, **options: Any) -> Iterator[ConsumerGroups]:
    with open_cluster(cluster) as opened, opened.groups(**options) as groups:
        yield groups


@contextmanager
def fenced_writer(flow: Flow, name: str) -> Iterator[FencedWriter]:
    """Holds a transactional id, with connections of its own."""
    with open_flow(flow) as opened, FencedWriter(opened, name) as writer:
        yield writer


@contextmanager
def run_lease(flow: Flow) -> Iterator[RunLease]:
    with open_flow(flow) as opened, RunLease(opened) as lease:
        yield lease


def state_of(flow: Flow, *, stable: bool) -> FlowState:
    with open_flow(flow) as opened:
        return opened.ask_anew(stable=stable).answer().state


def read_syncs_done(flow: Flow) -> Mapping[str, SyncDone]:
    with open_flow(flow) as opened:
        return reading.ask_syncs_done(opened).answer()


def carry_out(flow: Flow, sync: SyncName, *, run_id: str = "", dry_run: bool = False, **options: Any) -> SyncOutcome:
    """One sync, as of Syncs.carry_out."""
    with open_flow(flow) as opened:
        return syncs.Syncs(opened, run_id=run_id, dry_run=dry_run).carry_out(sync, **options)


def prepare_run(flow: Flow, request: RunRequest, **options: Any) -> Any:
    with run.open_run(flow, request) as made:
        return made.prepare(**options)


def copy_run(flow: Flow, request: RunRequest, *how: Any) -> None:
    with run.open_run(flow, request) as made:
        made.copy(*how)


def run_lanes(job: CopyJob, tasks: Sequence[LaneTask], *more: lane_runner.More) -> Generator[LaneResult]:
    """Lanes with connections of their own, as in another process."""
    with open_flow(job.flow) as opened:
        yield from lane_runner.run_lanes(opened, job, tasks, *more)
