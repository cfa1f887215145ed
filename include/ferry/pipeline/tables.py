"""What people read about a plan, a report and a sync: tables and lines. The CLI and Airflow's tasks only render them (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # `ferry --help` loads this module
    from ferry.ledger.run_report import RunReport
    from ferry.ledger.sync_outcome import SyncOutcome
    from ferry.pipeline.plan import RunPlan


class Table(NamedTuple):
    """Rows under a title."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


def plan_parts(planned: RunPlan) -> Iterator[str | Table]:
    """What a run would do, in the order in which it is shown."""
    for new in planned.topics.create:
        yield f"create {new.remote_topic}: {new.partitions} partitions, replication factor {new.replication_factor}"
    for growth in planned.topics.grow:
        yield f"grow {growth.remote_topic}: {growth.now} to {growth.partitions} partitions"
    for few in planned.few_replicas:
        yield f"{few}: ferry doctor prints the command that adds the missing ones"
    rows: list[tuple[object, ...]] = [
        (
            plan.facts.topic,
            plan.facts.partition,
            plan.facts.remote_topic,
            plan.position,
            plan.facts.end,
            plan.offsets,
            "; ".join(plan.notes),
        )
        for plan in planned.partitions
        if plan.failure is None and (plan.has_work or plan.notes)
    ]
    columns = ("topic", "partition", "remote topic", "position", "end", "offsets", "notes")
    yield Table(f"{planned.flow}: to copy", columns, rows)
    yield from map(str, planned.failed)
    yield from (f"open: {held.what}" for held in planned.last_stable_lags if not held.overdue)


def report_parts(report: RunReport) -> Iterator[str | Table]:
    """What a run copied. Its problems and syncs are not among it."""
    rows: list[tuple[object, ...]] = [
        (one.topic, one.partition, one.remote_topic, one.upstream_start, one.upstream_end, one.counters.records, one.counters.bytes)
        for one in report.partitions
    ]
    if rows:
        columns = ("topic", "partition", "remote topic", "from", "until", "records", "bytes")
        yield Table(f"{report.flow}: {report.run_id}", columns, rows)
    if not rows and not report.problems():
        yield "nothing to copy"
        return
    if report.from_target:
        yield f"{report.from_target:,} records had come from the target: not sent back"
    yield f"{report.records:,} records, {report.bytes:,} bytes in {report.seconds:.1f} s (CPU {report.cpu_seconds:.1f} s)"


def sync_parts(outcome: SyncOutcome, listed: int | None = None) -> Iterator[str | Table]:
    """What a sync changed and left alone, at most `listed` rows of each. Its notices and failures are not among it."""
    if outcome.left_out:
        yield f"{outcome.sync}: left out: {outcome.left_out}"
        return
    if outcome.changes:
        rows: list[tuple[object, ...]] = [(change.what, change.action, change.detail, change.reason) for change in outcome.changes[:listed]]
        yield Table(f"{outcome.sync}: {'would change' if outcome.dry_run else 'changed'}", ("what", "action", "detail", "reason"), rows)
    else:
        yield f"{outcome.sync}: {'nothing failed, nothing to change' if not outcome.failed else 'nothing changed'}"
    if outcome.skipped:
        yield Table(f"{outcome.sync}: left alone", ("what", "reason"), [(entry.what, entry.reason) for entry in outcome.skipped[:listed]])
