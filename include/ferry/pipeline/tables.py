"""The tables and lines that people read about a plan, a report and a sync. The CLI and Airflow's tasks only draw them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ferry.errors import count_of, some_of
from ferry.policy.naming import is_machinery

if TYPE_CHECKING:  # `ferry --help` loads this module
    from ferry.copying.partition_plan import PartitionPlan
    from ferry.ledger.run_report import RunReport, Skipped
    from ferry.ledger.sync_outcome import SyncOutcome
    from ferry.pipeline.run_plan import RunPlan


LISTED_PARTITIONS = 100  # a person reads no more rows of a report
LISTED_RANGES = 4
LISTED_LEFT_OUT = 3


class Table(NamedTuple):
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]

    @property
    def texts(self) -> list[list[str]]:
        """The cells of each row as people see them. A cell of None is empty."""
        return [[_text(cell) for cell in row] for row in self.rows]

    @classmethod
    def of(cls, title: str, entries: Iterable[object], *columns: str | tuple[str, str]) -> Table:
        """A row for each entry. A column shows the attribute of its name (`remote topic`: `remote_topic`), or that of a pair."""
        pairs = [(column, column.replace(" ", "_")) if isinstance(column, str) else column for column in columns]
        names, attributes = zip(*pairs, strict=True)
        return cls(title, names, list(map(attrgetter(*attributes), entries)))


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)


def left_out_lines(skipped: Iterable[Skipped]) -> Iterator[str]:
    """A line for each topic that is expected, and one for all others. Entries about no topic have none."""
    others: dict[str, list[str]] = {}
    for entry in skipped:
        if entry.expected:
            yield f"topic {entry.what} is not copied: {entry.reason}"
        elif entry.expected is not None and not is_machinery(entry.what):
            others.setdefault(entry.reason, []).append(entry.what)
    told = [f"{some_of(names, LISTED_LEFT_OUT)} ({reason})" for reason, names in others.items()]
    if told:
        yield f"left out: {count_of(sum(map(len, others.values())), 'topic')} of the source: {'; '.join(told)}"


def plan_parts(planned: RunPlan) -> Iterator[str | Table]:
    """Topics to create and to grow, records to copy, and obstacles, in the order in which people see them."""
    for new in planned.topics.create:
        factor = "the brokers' default" if new.replication_factor < 0 else new.replication_factor
        yield f"create {new.remote_topic}: {count_of(new.partitions, 'partition')}, replication factor {factor}"
    for skipped in planned.topics.refused:
        yield f"without {skipped.what}: {skipped.reason}"
    for growth in planned.topics.grow:
        yield f"grow {growth.remote_topic}: {growth.now} to {count_of(growth.partitions, 'partition')}"
    yield from planned.notices
    yield from left_out_lines(planned.skipped)
    shown = [plan for plan in planned.partitions if plan.failure is None and (plan.has_work or plan.notes)]
    rows = [(*plan.facts.key, plan.facts.remote_topic, _ranges(plan), plan.offsets, "; ".join(plan.notes)) for plan in shown]
    yield Table(f"{planned.flow}: to copy", ("topic", "partition", "remote topic", "from and until", "offsets", "notes"), rows)
    yield from map(str, planned.failed)
    yield from (f"open: {held.what}" for held in planned.last_stable_lags if not held.overdue)


def _ranges(plan: PartitionPlan) -> str:
    """The upstream offsets to copy, each end exclusive."""
    return some_of([f"{segment.start:,} to {segment.end:,}" for segment in plan.segments], LISTED_RANGES)


def report_parts(report: RunReport) -> Iterator[str | Table]:
    """What a run copied, at most LISTED_PARTITIONS rows. The caller shows its problems and syncs."""
    if report.partitions:
        bounds = ("from", "upstream_start"), ("until", "upstream_end")
        counts = ("records", "counters.records"), ("bytes", "counters.bytes")
        listed = nlargest(LISTED_PARTITIONS, report.partitions, attrgetter("counters.bytes"))
        listed.sort(key=attrgetter("topic", "partition"))
        yield Table.of(f"{report.flow}: {report.run_id}", listed, "topic", "partition", "remote topic", *bounds, *counts)
        if more := len(report.partitions) - len(listed):
            yield f"and {count_of(more, 'partition')} with fewer bytes, which the report as JSON lists"
    yield from left_out_lines(report.skipped)
    if report.taken_over is not None:
        yield f"{f'run {report.taken_over}' if report.taken_over else 'another command'} took the flow over"
    elif not report.partitions and not report.problems():
        yield "nothing to copy"
        return
    if report.repeated:
        yield f"copied once more, so the target may have these records twice: {'; '.join(map(str, report.repeated))}"
    if report.from_target:
        yield f"{count_of(report.from_target, 'record')} had come from the target: not sent back"
    yield sum_line(report)


def sum_line(report: RunReport) -> str:
    """What a run copied, and what failed or was lost, in one line."""
    speed = f"{report.bytes / 1e6 / report.seconds:,.1f} MB/s, " if report.seconds else ""
    copied = (
        f"{count_of(report.records, 'record')}, {report.bytes:,} bytes in {report.seconds:.1f} s ({speed}CPU {report.cpu_seconds:.1f} s)"
    )
    places = {"failed": [one.where for one in report.failed], "lost": [loss.where for loss in report.losses]}
    told = [f"{name}: {some_of(ill)}" for name, ill in places.items() if ill]
    return "; ".join([f"{copied}, {count_of(len(report.partitions), 'partition')}", *told])


def sync_parts(outcome: SyncOutcome, listed: int | None = None) -> Iterator[str | Table]:
    """What a sync changed and left alone, at most `listed` rows of each. The caller shows its notices and failures."""
    if outcome.left_out:
        yield f"{outcome.sync}: left out: {outcome.left_out}"
        return
    if outcome.changes:
        title = f"{outcome.sync}: {'would change' if outcome.dry_run else 'changed'}"
        yield Table.of(title, outcome.changes[:listed], "what", "action", "detail", "reason")
    else:
        failed = f"{len(outcome.failed):,} failed" if outcome.failed else "nothing failed"
        yield f"{outcome.sync}: {failed}, nothing {'changed' if outcome.failed else 'to change'}"
    if outcome.skipped:
        yield Table.of(f"{outcome.sync}: left alone", outcome.skipped[:listed], "what", "reason")


def sync_line(outcome: Mapping[str, Any]) -> str:
    """What a sync that was not left out did, in one line; `outcome`: as of SyncOutcome.document."""
    words = (("changes", "changed"), ("skipped", "left alone"), ("failed", "failed"))
    told = [f"{outcome['counts'][name]:,} {word}" for name, word in words if name == "changes" or outcome["counts"][name]]
    alone = [f"; the first left alone: {one['what']}: {one['reason']}" for one in outcome["skipped"][:1]]
    return "".join([f"{outcome['sync']}: {', '.join(told)}", *alone])
