"""The flow's syncs beside the copy of a run that follows, each at its own interval, as MirrorMaker 2's connectors do them.

Each sync has a thread and connections of its own. So one that hangs or fails delays neither the copy nor the others. The sync of topics is
not among them: the driver of the copy makes topics, because it copies them too. Ferry records at most every KEEP_SECONDS when a sync was
done. It records the outcome for the run's report at most every REPORT_SECONDS, because runs read all of the runs topic. So these topics do
not grow with the number of heartbeats. A first failure is recorded at once: the next try may still wait when the run ends.
"""

from collections.abc import Callable
from contextlib import suppress

from ferry import clock
from ferry.config import Flow
from ferry.errors import FerryError
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.ledger.reading import ask_syncs_done
from ferry.ledger.runs_topic import RunSync, write_run_record
from ferry.ledger.sync_outcome import SyncOutcome, WholeSyncFailure
from ferry.pipeline.syncs import Syncs
from ferry.syncs.names import AFTER_THE_COPY, BEFORE_THE_COPY, SYNCS, SyncName, not_enabled

# The interval of a sync without one of its own: MirrorMaker 2 writes offset syncs at least this often.
USUAL_SECONDS = 60.0
KEEP_SECONDS = 60.0
REPORT_SECONDS = 600.0
# After a failure Ferry tries again after this time, or at the next interval if that is later.
FAILED_SECONDS = 10.0
# Less than the time that the copy waits for all of them: a sync that takes long must not delay the end of a run.
LAST_SECONDS = 4.0
HANGS_SECONDS = 300.0  # a sync that has taken this long at the end of the run hangs


def sync_meanwhile(flow: Flow, run_id: str, say: Callable[[str], None], over: clock.Event) -> None:
    """Do the syncs that the flow has enabled, until `over`. One that takes long then is not waited for; if it hangs, the report says so."""
    wanted = [name for name in (*BEFORE_THE_COPY, *AFTER_THE_COPY) if not not_enabled(flow, name)]
    busy: dict[SyncName, float] = {}
    shared = {"over": over, "busy": busy}
    threads = [
        clock.Thread(target=_sync_on, args=(flow, run_id, say, name), kwargs=shared, name=f"ferry-sync-{name}", daemon=True)
        for name in wanted
    ]
    for thread in threads:
        thread.start()
    over.wait()
    deadline = clock.monotonic() + LAST_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - clock.monotonic()))
    for name, since in dict(busy).items():
        if (seconds := clock.monotonic() - since) >= HANGS_SECONDS:
            _tell_that_it_hangs(flow, run_id, say, name, seconds)


def _tell_that_it_hangs(flow: Flow, run_id: str, say: Callable[[str], None], name: SyncName, seconds: float) -> None:
    problem = f"it had not ended after {seconds:.0f} s, when the run ended"
    say(f"sync {name.value}: {problem}")
    failure = WholeSyncFailure(f"sync {name.value}", "RunUnfinished", problem)
    try:
        with open_flow(flow) as opened:
            outcome = SyncOutcome(sync=name.value, failed=(failure,), seconds=seconds)
            write_run_record(opened, RunSync(run_id, name.value, outcome.document()))
    except FerryError as error:
        say(f"that sync {name.value} hangs is not in the run's report: {error}")


def _sync_on(
    flow: Flow, run_id: str, say: Callable[[str], None], name: SyncName, *, over: clock.Event, busy: dict[SyncName, float]
) -> None:
    """Do one sync again and again, until `over`. `busy`: since when each sync is at work."""
    interval = float(SYNCS[name].interval(flow)) or USUAL_SECONDS
    failing = False
    with open_flow(flow) as opened:
        syncs = Syncs(opened, run_id=run_id, topics_made=True, keep_seconds=KEEP_SECONDS, report_seconds=REPORT_SECONDS)
        pause = _until_due(opened, name, interval)
        while not over.wait(pause):
            opened.anew()  # what the sync has read of both clusters may have changed
            busy[name] = clock.monotonic()
            try:
                failed = syncs.carry_out(name, on_request=True, unless_disabled=True).failed
                problem = "; ".join(map(str, failed))
            except Exception as error:  # noqa: BLE001 - whatever it is, the sync must be tried again
                problem = f"{type(error).__name__}: {error}"
            del busy[name]
            if problem and not failing:
                say(f"sync {name.value} failed; Ferry tries again every {max(interval, FAILED_SECONDS):.0f} s: {problem}")
            if bool(problem) != failing:
                with suppress(FerryError):  # it is written later, with the next outcome
                    syncs.keep()
            failing = bool(problem)
            pause = max(interval, FAILED_SECONDS) if failing else interval
        try:
            syncs.keep()
        except FerryError as error:
            say(f"what sync {name.value} did last is not in the run's report: {error}")


def _until_due(opened: OpenFlow, name: SyncName, interval: float) -> float:
    """Seconds until an earlier run's sync is as old as the interval."""
    try:
        done = ask_syncs_done(opened).answer().get(name.value)
    except FerryError:
        return 0.0
    age = interval if done is None else clock.time() - done.finished / 1000
    return max(0.0, interval - age) if age >= 0 else 0.0
