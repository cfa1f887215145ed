"""The records of a try of a run in the runs topic: that it begins, and how it ended. Also reads there about runs that began later.

If another run takes the flow over from a run that follows, the first run has ended. But if the other run does not follow all topics of the
flow (a backfill, or a run that a person started), the first run may take the flow again when the other one has ended: as another try, with
its own run id. A command that takes the flow and is no run, like a failover, ends the first run for good.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from ferry import clock
from ferry.copying.request import SILENT_SECONDS, RunRequest
from ferry.copying.run_liveness import FOLLOW_LOOK_SECONDS, RunProof
from ferry.errors import FerryError
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import ask_syncs_done
from ferry.ledger.recovery_record import Stage, current_record, read_recovery, stage_of
from ferry.ledger.run_report import PartitionFailure, Skipped, time_now
from ferry.ledger.runs_topic import (
    RunOpened,
    RunRecords,
    RunResult,
    following,
    follows,
    read_recent_runs,
    read_run_records,
    runs_after,
    write_run_record,
)


class TryRecords:
    """What one try writes, and what it reads before that."""

    def __init__(self, opened: OpenFlow, request: RunRequest, cpu_told: float) -> None:
        """`cpu_told`: the CPU seconds of this process that the results of earlier tries have."""
        self._opened, self._flow, self._request, self._cpu_told = opened, opened.flow, request, cpu_told
        self.ledger_ends: Mapping[int, int] = {}  # where the ledger ended when the run began
        self.ends_of_try: Mapping[int, int] = {}  # where it ended when this try began
        self.gave_way_to = ""  # the run that has the flow now, if this one may come back
        self._known: Collection[str] = ()  # runs that began later than this one, and before this try
        self._started, self._began = clock.monotonic(), ""

    def begin(self) -> RunOpened | None:
        """NewerFormat, before anything is written.

        If this is another try of a run that follows: returns the run that has taken the flow over and still goes on. If that run's driver
        is slow, Ferry may take it for ended: then the two runs take over from each other once more.
        """
        run_id, moment = self._request.run_id, self._request.follow_until
        newer_format, asked = ask_syncs_done(self._opened), self._opened.target.reader().ask_end_offsets(self._flow.ledger_topic)
        opened, ends = read_run_records(self._opened, run_id).opened, asked.answer()
        newer_format.answer()
        newer = self._newer_runs() if opened is not None and moment is not None else {}
        self._known = newer.keys()
        found = following(newer, clock.time())
        if found is not None and RunProof(self._opened).comes():  # it may have been killed, or not have begun to copy
            return found
        until = None if moment is None else moment.isoformat(timespec="seconds")
        now = RunOpened(run_id, time_now(), self._request.bound, ends, until, self._request.topics)
        write_run_record(self._opened, now)  # in each try: it says that the run goes on
        self._began = now.started
        self.ledger_ends, self.ends_of_try = (opened or now).ledger_ends, ends
        return None

    def taker(self) -> RunOpened | None:
        """The run that has taken the flow over since this try began; None if it was no run."""
        return next((run.opened for run_id, run in reversed(self._newer_runs().items()) if run_id not in self._known), None)

    def give_way(self, to: RunOpened | None) -> None:
        """Note the run that has the flow now. Writes nothing: the result says that the run was taken over."""
        if to is not None and (to.follow_until is None or to.topics):
            self.gave_way_to = to.run_id

    def _newer_runs(self) -> dict[str, RunRecords]:
        """Empty if the runs topic cannot be read: it only names what happened."""
        with suppress(FerryError):
            return runs_after(read_recent_runs(self._opened), self._request.run_id)
        return {}

    def end(
        self,
        failed: Iterable[PartitionFailure],
        skipped: tuple[Skipped, ...],
        cpu_seconds: float,
        *,
        superseded: str | None = None,
        taken_over: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """Write the result. `cpu_seconds`: of workers. `taken_over`, `superseded`: as of RunResult. `seconds`: as of write_run_record."""
        result = RunResult(
            run_id=self._request.run_id,
            finished=time_now(),
            seconds=round(clock.monotonic() - self._started, 3),
            cpu_seconds=round(cpu_seconds + clock.process_time() - self._cpu_told, 3),
            failed=tuple(failed),
            skipped=skipped,
            superseded=superseded,
            taken_over=taken_over,
            began=self._began,
        )
        write_run_record(self._opened, result, seconds=seconds)


def waited_for(opened: OpenFlow, request: RunRequest, other: str, say: Callable[[str], None]) -> bool:
    """Wait for the result of the run to which a run that follows gave way. Whether the flow is free then.

    It is not free if the time of the run is over, if another run follows meanwhile, or if the flow was failed over. A run that has written
    nothing into the ledger for SILENT_SECONDS counts as ended. If it still runs, the next run fences it, and it says so.
    """
    say(f"run {other} has the flow; this run follows again when that one has ended")
    flow = opened.flow
    free: bool | None = None
    problem = ""
    ends, moved = dict[int, int](), clock.monotonic()
    while free is None and request.follow_until is not None and clock.time() < request.follow_until.timestamp():
        clock.sleep(FOLLOW_LOOK_SECONDS)
        try:
            runs = read_recent_runs(opened)
            free = is_free(runs, other, clock.time())
            if free is False and not RunProof(opened).comes():  # the run that follows has not taken the flow, and perhaps never will
                free = is_free({name: run for name, run in runs.items() if not _follows_all(run, clock.time())}, other, clock.time())
            if free is None:
                before, ends = ends, opened.target.reader().ask_end_offsets(flow.ledger_topic).answer()
                moved = clock.monotonic() if ends != before else moved
                free = True if clock.monotonic() - moved > SILENT_SECONDS else None
                if free:
                    say(f"run {other} has written nothing for {SILENT_SECONDS:.0f} s and has no result: this run takes the flow back")
            if free:
                opened.anew()
                free = stage_of(current_record(flow, read_recovery(opened, stable=False))) is Stage.REPLICATING
        except FerryError as failure:
            free = None
            if str(failure) != problem:
                say(f"cannot see whether run {other} has ended; Ferry tries again: {failure}")
            problem = str(failure)
    return bool(free)


def is_free(runs: Mapping[str, RunRecords], other: str, now: float) -> bool | None:
    """Whether run `other` of `runs` and those after it have ended; None: not yet. False if one of them follows all topics (pure)."""
    open_runs = [run for run in (runs[other], *runs_after(runs, other).values()) if run.result is None] if other in runs else []
    if any(_follows_all(run, now) for run in open_runs):
        return False
    return None if open_runs else True


def _follows_all(run: RunRecords, now: float) -> bool:
    """Whether it has no result, follows, and copies all topics."""
    return run.result is None and run.opened is not None and follows(run.opened, now) and not run.opened.topics
