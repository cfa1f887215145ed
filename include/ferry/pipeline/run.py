"""One run of a flow: plan, prepare topics, copy, sync, report. The command line, Airflow's tasks and recovery all use it.

A step that has no result of an earlier step reads from the clusters what it needs. So the steps may run in different processes, as
Airflow's tasks do, and may be repeated.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ferry import clock
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import take_snapshot
from ferry.errors import FerryError, error_named, some_of
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.ledger.run_report import RunReport
from ferry.ledger.runs_topic import read_run_records
from ferry.ledger.sync_outcome import SyncOutcome
from ferry.ledger.topics import ensure_internal_topics
from ferry.pipeline.report_reading import assemble_report, report_without_copy
from ferry.pipeline.run_plan import RunPlan, plan_remote_topics, plan_run
from ferry.pipeline.syncs import Syncs
from ferry.pipeline.syncs_beside import sync_meanwhile
from ferry.syncs.names import AFTER_THE_COPY, BEFORE_THE_COPY, SyncName, not_enabled
from ferry.syncs.topics import TopicChanges, apply_topics

if TYPE_CHECKING:
    from ferry.copying.lane_runner import LaneRunner

# A run that is killed loses the outcomes of the syncs of the last seconds: the next run does these again. Each write costs a round trip.
KEEP_SECONDS = 5.0
# A run that ends by an error waits this long for the target, which may be the cause of the error.
LAST_KEEP_SECONDS = 10.0


class Run:
    """One try of a run, or some steps of it."""

    def __init__(self, opened: OpenFlow, request: RunRequest) -> None:
        self.opened, self.flow, self.request = opened, opened.flow, request
        self._prepared = False
        self._planned = 0.0  # when
        self._ledger_ends: Mapping[int, int] | None = None  # where this process opened the run

    @cached_property
    def plan(self) -> RunPlan:
        """What the run does, decided when it is first asked for."""
        self._planned = clock.monotonic()
        return plan_run(self.opened, self.request)

    def _lagging(self) -> set[TopicPartition] | None:
        """Where a transaction may be overdue; None: anywhere. If the plan saw no transaction, one that is open now is still too young."""
        young = self._planned and clock.monotonic() - self._planned < self.flow.open_transaction_warn_ms / 1000
        return {entry.held for entry in self.plan.last_stable_lags} if young and not self.plan.failed else None

    @property
    def lag_is_as_planned(self) -> bool:
        """Whether the plan's lag is still right at the end: the run makes no topics, and copies heartbeats at most."""
        return not (self.plan.needs_copy or self.plan.topics.create or self.plan.topics.grow)

    def prepare(self, *, spark_follows: bool) -> TopicChanges:
        """Create and grow remote topics, and Ferry's own. If no Spark job follows, record where partitions start, and copy heartbeats."""
        planned = self.plan.topics if "plan" in self.__dict__ else None
        if planned is None or self.plan.internal_topics_missing:  # else the plan has found them as they must be
            ensure_internal_topics(self.flow, self.opened.target.admin)
        self._prepared = True
        if planned is None:
            planned = plan_remote_topics(self.opened, take_snapshot(self.opened, self.request, stable=False))
        changes = apply_topics(self.opened, planned)
        if not spark_follows:
            from ferry.copying.lane_runner import InlineLaneRunner  # noqa: PLC0415 - as below

            self.copy(InlineLaneRunner(), lambda _: None)
        return changes

    def copy(self, runner: "LaneRunner", log: Callable[[str], None]) -> None:
        """The whole copy of one try; its outcome is in the runs topic then. FerryError when it could not be carried out.

        A run that follows, and from which a run that does not has taken the flow over, takes it again when that one has ended.
        """
        from ferry.copying.attempt_records import waited_for  # noqa: PLC0415 - likewise
        from ferry.copying.driver import CopyDriver  # noqa: PLC0415 - slow to load, and many runs have nothing to copy
        from ferry.copying.following_driver import FollowingDriver  # noqa: PLC0415 - likewise

        make: Callable[..., CopyDriver] = CopyDriver
        if self.request.follow_until is not None:
            syncs = partial(sync_meanwhile, self.flow, self.request.run_id, log)
            make = partial(FollowingDriver, until=self.request.follow_until.timestamp(), meanwhile=syncs)
        cpu_told, goes_on, synced = 0.0, True, False
        while goes_on:
            driver = make(self.opened, self.request, runner, log, self._lagging, cpu_told=cpu_told)
            try:
                driver.run()
            finally:
                self.opened.anew()
            self._ledger_ends, cpu_told, other = driver.records.ledger_ends, clock.process_time(), driver.records.gave_way_to
            goes_on = bool(other) and waited_for(self.opened, self.request, other, log)
            if not (goes_on or synced or self.request.follow_until) and driver.lacks_schemas:  # one may be new since the sync
                goes_on = synced = not self._schemas_anew().failed

    def _schemas_anew(self) -> SyncOutcome:
        return Syncs(self.opened, run_id=self.request.run_id, topics_made=True).carry_out(SyncName.SCHEMAS, on_request=True)

    def bring_schemas(self) -> None:
        """The syncs before the copy, if there is something to copy. The error of the first failure: nobody could read the copies."""
        names = [name for name in BEFORE_THE_COPY if self.plan.needs_copy and not not_enabled(self.flow, name)]
        outcomes = list(self.sync(names) if names else ())
        if failures := [failure for outcome in outcomes for failure in outcome.failed]:
            told = some_of([f"{failure.what}: {failure.problem}" for failure in failures], between="; ")
            raise error_named(failures[0].error)(f"no record is copied: {told}")

    def move_records(self, copy: Callable[[], object], prepared: Callable[[TopicChanges], object]) -> None:
        """Prepare what the plan says and hand the changes to `prepared`; then call `copy`, if the plan has records to copy."""
        if self.plan.needs_preparation:
            prepared(self.prepare(spark_follows=self.plan.needs_copy))
        if self.plan.needs_copy:
            try:
                copy()
            finally:
                self.opened.anew()  # the copy may have been another process's

    def sync(self, names: Iterable[SyncName] = AFTER_THE_COPY, *, dry_run: bool = False) -> Iterator[SyncOutcome]:
        """Carry out those of these syncs that are enabled and due, each when the caller asks for its outcome."""
        kept = {"keep_seconds": KEEP_SECONDS, "report_seconds": KEEP_SECONDS}
        syncs = Syncs(self.opened, run_id=self.request.run_id, dry_run=dry_run, topics_made=self._prepared, **kept)
        try:
            for name in names:
                yield syncs.carry_out(name)
        except BaseException:  # also when the caller stops before the last sync: those that are done shall not be done again
            with suppress(FerryError):
                syncs.keep(LAST_KEEP_SECONDS)
            raise
        syncs.keep()

    def taken_over(self) -> str | None:
        """If the run followed, and ended because another has taken the flow over: that run, which does the syncs; empty: a command."""
        if self.request.follow_until is None:
            return None
        result = read_run_records(self.opened, self.request.run_id).result
        return None if result is None else result.taken_over

    def report(self, *, idle: bool | None = None, notices: Sequence[str] = ()) -> RunReport:
        """What the run did so far, over all its tries. `idle`: whether nothing was prepared or copied; None: as the plan says.

        `notices`: what its plan warned of, if this process has not made the plan.
        """
        if idle is None:
            idle = not (self.plan.needs_preparation or self.plan.needs_copy)
        if not idle:
            found = assemble_report(self.opened, self.request, self._ledger_ends)
        else:
            records = read_run_records(self.opened, self.request.run_id)
            found = report_without_copy(self.flow, self.request, records, self.plan.failed, self.plan.skipped)
            if records.opened is not None:  # an earlier try has copied
                before, now = assemble_report(self.opened, self.request), found
                found = replace(before, finished=now.finished, failed=now.failed, skipped=now.skipped, superseded=None, taken_over=None)
        return replace(found, notices=self.plan.notices if "plan" in self.__dict__ else tuple(notices))


@contextmanager
def open_run(flow: Flow, request: RunRequest) -> Iterator[Run]:
    """A run of a flow that is opened for it."""
    with open_flow(flow) as opened:
        yield Run(opened, request)


def copied(
    opened: OpenFlow, request: RunRequest, copy: Callable[[Run], object], prepared: Callable[[TopicChanges], object] = lambda _: None
) -> RunReport:
    """A run without the syncs after the copy; its report. `copy` and `prepared`: as of `Run.move_records`."""
    opened.anew()
    run = Run(opened, request)
    run.bring_schemas()
    run.move_records(lambda: copy(run), prepared)
    return run.report()
