"""The verdict about a flow: one word, why, how far behind it is, and the one next step (pure).

Everything that shows people the state of a flow uses it: `ferry status`, `ferry watch`, the report of a run, the Ferry page.

The word is the worst that applies: unreachable (nothing is known), then loss, failing, missing, paused, never ran, lagging, queued, left
out, healthy. The verdict holds every reason, the worst first, so that no reason hides another. Only the page asks Airflow, so only it knows
what is paused or queued.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import Any

from ferry.clusters.logs.held_back import LastStableLag
from ferry.clusters.net.partitions import grouped
from ferry.config.flow import flow_command, with_commands
from ferry.config.settings import HEADROOM_SECONDS, LAG_SECONDS
from ferry.copying.request import LATEST, SILENT_SECONDS
from ferry.errors import (
    CopiesDiffer,
    ExitCode,
    TransactionHangs,
    count_of,
    error_named,
    some_of,
    span,
)
from ferry.ledger.lost_records import remedy
from ferry.ledger.run_summary import RunState
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lacking import NAMED, copies_gone, is_unread, left_out_topics, not_counted, up_to_date
from ferry.monitoring.limits import RUN_NOW, BrokenLimit, step_of
from ferry.monitoring.missing import Missing, backfill_command, missing_by_topic
from ferry.monitoring.runs import UNDER_WAY, ago, could_not_reach, failed_syncs, seconds_since, told_under_way, whole_problem
from ferry.monitoring.schedule import minute, told_next
from ferry.wire.strict_json import parse_time

# The lag of a flow that runs on time stays below this many intervals of its schedule.
INTERVALS_BEHIND = 2
UP_TO_DATE = "up to date"


class Health(StrEnum):
    UNREACHABLE = "unreachable"
    LOSS = "loss"
    FAILING = "failing"
    MISSING = "missing"
    PAUSED = "paused"
    NEVER_RAN = "never_ran"
    LAGGING = "lagging"
    QUEUED = "queued"
    LEFT_OUT = "left_out"
    HEALTHY = "healthy"
    UNKNOWN = "unknown"


# By health: the words for people, and the exit code.
_TOLD = {
    Health.UNREACHABLE: ("cannot be read", ExitCode.UNREACHABLE),
    Health.LOSS: ("has lost records", ExitCode.DATA_LOST),
    Health.FAILING: ("is failing", ExitCode.PARTLY_FAILED),
    Health.MISSING: ("is not complete", ExitCode.PARTLY_FAILED),
    Health.PAUSED: ("is paused", ExitCode.PARTLY_FAILED),
    Health.NEVER_RAN: ("never ran", ExitCode.PARTLY_FAILED),
    Health.LAGGING: ("lags", ExitCode.PARTLY_FAILED),
    Health.QUEUED: ("waits", ExitCode.DONE),
    Health.LEFT_OUT: ("leaves topics out", ExitCode.PARTLY_FAILED),
    Health.HEALTHY: ("is healthy", ExitCode.DONE),
    Health.UNKNOWN: ("is unknown", ExitCode.OTHER),
}


class Step(StrEnum):
    """Next steps for which the Ferry page has a button or a place. All but `unpause` are names of commands."""

    RUN = "run"
    BACKFILL = "backfill"
    VERIFY = "verify"
    ACK_LOSS = "ack-loss"
    UNPAUSE = "unpause"


@dataclass(frozen=True)
class Reason:
    """Why a flow is not healthy, and what to do about it. `step`: None: only a person can do it.

    `word`: says the state in place of the word of its health, if that word would mislead; the text begins with it.
    """

    health: Health
    text: str
    next_step: str
    step: Step | None = None
    word: str = ""


@dataclass(frozen=True)
class Verdict:
    flow: str
    health: Health
    reasons: tuple[Reason, ...] = ()
    behind: str = ""  # how far the flow is behind ("up to date"); empty: not known, as below
    last_run: str = ""  # what the last run did

    @property
    def next_step(self) -> str:
        return self.reasons[0].next_step if self.reasons else ""

    @property
    def step(self) -> Step | None:
        return self.reasons[0].step if self.reasons else None

    @property
    def word(self) -> str:
        return self.reasons[0].word if self.reasons else ""

    @property
    def not_copied(self) -> str:
        """How many topics that people expect to be copied are not, in words; empty: none."""
        return next((reason.word for reason in self.reasons if reason.health is Health.LEFT_OUT), "")

    @property
    def exit_code(self) -> ExitCode:
        return _TOLD[self.health][1]

    @property
    def _rest(self) -> str:
        """How far the flow is behind, beside its worst reason."""
        if self.health is Health.MISSING:
            return self.behind and f"besides these, {self.behind}"
        if not self.reasons or self.behind != UP_TO_DATE:
            return self.behind
        others = "the other topics are" if self.health is Health.LEFT_OUT else "otherwise"
        return "" if self.health is Health.NEVER_RAN else f"{others} {self.behind}"

    def __str__(self) -> str:
        """One line."""
        told = "; ".join(filter(None, ("" if self.health is Health.LEFT_OUT else self.not_copied, self._rest, self.last_run)))
        state = "" if self.word else f" {_TOLD[self.health][0]}"
        if not self.reasons:
            return f"{self.flow}{state}{told and ', '}{told}"
        return f"{self.flow}{state}: {self.reasons[0].text}{told and '; '}{told}"

    @property
    def after_run(self) -> str:
        """One line for the end of a run. A run does not look for what a seed left out, so it calls no flow healthy or up to date."""
        if self.health not in {Health.HEALTHY, Health.LEFT_OUT}:
            return str(self)
        without = f"{self.reasons[0].text}; " if self.reasons else ""
        if self.behind == UP_TO_DATE:
            return f"{self.flow}: {without}{'otherwise ' if without else ''}{_NOTHING_LEFT}"
        return f"{self.flow}: {without}{self.behind}" if without else f"{self.flow} is {self.behind}"

    def document(self) -> dict[str, Any]:
        """The keys that JSON documents have of it."""
        return {
            "health": self.health.value,
            "reasons": [reason.text for reason in self.reasons],
            "next_step": self.next_step,
            "verdict": str(self),
        }


def verdict_of(health: FlowHealth, now: float) -> Verdict:
    """`now` in seconds since the epoch."""
    found = (reason for judge in _JUDGES for reason in judge(health, now))
    reasons = tuple(replace(reason, next_step=with_commands(reason.next_step, health.flow, health.config)) for reason in found)
    lags = any(reason.health is Health.LAGGING and not reason.word for reason in reasons)
    last_run = "" if any(reason.text.startswith(_LAST_RUN) for reason in reasons) else _last_run(health, now, lags)
    if not reasons and not health.read:
        return Verdict(health.flow, Health.UNKNOWN, (Reason(Health.UNKNOWN, "nothing was read yet", ""),))
    word, behind = reasons[0].health if reasons else Health.HEALTHY, _behind(health)
    return Verdict(health.flow, word, reasons, behind, last_run)


def _behind(health: FlowHealth) -> str:
    """How far the flow is behind, in words; empty: not known now."""
    lag = health.lag
    if not health.read or (health.problem is not None and health.problem.unreachable):  # what was read before may be wrong now
        return ""
    oldest = f", the oldest {span(lag.seconds)} old" if lag.seconds >= 0 else ""
    behind = f"{count_of(lag.records, 'record')} behind{oldest}" if lag.records else UP_TO_DATE
    fine = up_to_date(health)
    rest = "the rest is " if not_counted(health) else ""
    return f"{rest}{behind}{fine and '; up to date: '}{fine}"


def told_run(run: Mapping[str, Any] | None, now: float) -> str:
    """What the last run did, in words; empty without one."""
    if run is None:
        return ""
    since, records = ago(run, now), run.get("records")
    copied = "" if records is None else count_of(records, "record")
    if run["state"] in {RunState.DONE, RunState.NOTHING_NEW}:
        return f"last run{since}" + (f" copied {copied}" if copied else "")
    return f"last run{since}: {run['state']}" + (f", {copied} copied" if copied else "")


def _last_run(health: FlowHealth, now: float, lags: bool) -> str:
    """`told_run`. If the flow lags, also what that run left and how the lag has grown. Also which run was superseded, and which goes on.

    Only a run up to `latest` says something about the lag: others do not copy all that is there when they begin.
    """
    told, run, lag, newest = told_run(health.last_run, now), health.last_run, health.lag, health.newest_run
    running = newest is not None and newest["state"] == RunState.RUNNING
    goes_on = told_under_way(newest, now, health.commits, health.commits_left) if newest is not None and running else ""
    if run is None:
        return goes_on
    counts = run["newest"] and run["state"] == RunState.DONE and run["bound"] == LATEST
    left = run["lag_records"] if counts else None
    if lags and health.read and left is not None and 0 <= left <= lag.records:
        told += f" and left {left:,} behind (it copies what is there when it begins)"
        told += f"; the lag has grown by {lag.records - left:,} since" if left < lag.records else ""
    early = f"run {run['superseded']} ended early, because a newer run, or a command, took the flow over" if run["superseded"] else ""
    return "; ".join(filter(None, (told, early, goes_on)))


def _unreachable(health: FlowHealth, _: float) -> Iterator[Reason]:
    if health.problem is not None and health.problem.unreachable:
        yield Reason(Health.UNREACHABLE, health.problem.message, health.problem.next_step)


def _losses(health: FlowHealth, _: float) -> Iterator[Reason]:
    if total := health.losses_total:
        told = [
            (_LOST[kind], remedy(topics) if kind == "loss" else "remove the cause that ferry ledger names")
            for kind, topics in sorted(grouped((loss.kind, loss.topic) for loss in health.losses).items())
        ]
        what = (told[0][0] if len(told) == 1 else _LOST_IN_ANY_WAY).format(count_of(health.lost_records, "record"))
        again = f"{' and '.join(step for _, step in told)}, so that it does not happen again"
        steps = f"note what is lost; {again}; then end this warning: ferry ack-loss"
        yield Reason(Health.LOSS, f"{what}: {_named([loss.where for loss in health.losses], total)}", steps, Step.ACK_LOSS)
    if health.expired and not _goes_on(health.newest_run):  # a run may have read these records before they were deleted
        what = _LOST["loss"].format(count_of(sum(loss.records for loss in health.expired), "record"))
        text = f"{what}: {_named([loss.where for loss in health.expired], len(health.expired))}"
        places = {(loss.topic, loss.partition) for loss in health.expired}
        open_there = next((held for held in health.last_stable_lags if (held.topic, held.partition) in places), None)
        if open_there is None:
            yield Reason(Health.LOSS, text, f"{_RUN}: it copies what is left, and the ledger names the loss", Step.RUN)
        else:
            where = f"{open_there.held.topic}-{open_there.partition} on {open_there.cluster}"
            step = f"end the transaction that is open in {where}, because a run copies nothing of it before: {open_there.remedy}"
            yield Reason(Health.LOSS, f"{text}; what is left waits for an open transaction", step)


def _failing(health: FlowHealth, now: float) -> Iterator[Reason]:
    if health.problem is not None and not health.problem.unreachable:
        yield Reason(Health.FAILING, health.problem.message, health.problem.next_step)
    yield from _stopped(health)
    if health.held:
        held = list(map(_open, health.held))
        text = f"{count_of(len(held), 'transaction')} open for too long: {_named(held, len(held))}"
        yield Reason(Health.FAILING, text, health.held[0].remedy)
    yield from _failed_run(health, now)
    if health.last_verify is not None and (found := health.last_verify["differences_total"]):
        yield Reason(Health.FAILING, f"the last verify found {count_of(found, 'difference')}", CopiesDiffer.next_step, Step.VERIFY)


def _open(held: LastStableLag) -> str:
    open_for = "" if held.age_ms is None else f"open for {span(held.age_ms / 1000)}, "
    place = f"{held.held.topic}-{held.partition} on {held.cluster}"
    return f"{place} ({open_for}{count_of(held.waiting, 'record')} {'waits' if held.waiting == 1 else 'wait'} behind it)"


def _stopped(health: FlowHealth) -> Iterator[Reason]:
    """A reason for each error: each has its own next step. The problem is that of the first partition."""
    unseen = health.stopped_cut
    for error, found in grouped((failure.error, failure) for failure in health.stopped).items():
        total, unseen = len(found) + unseen, 0
        places = _named([failure.where for failure in found], total, ", ")
        what = "topic" if all(failure.partition < 0 for failure in found) else "partition"
        gist = found[0].problem.partition("; ")[0]  # without details and remedies
        text = f"{count_of(total, what)} stopped ({error}): {places}: {gist}{copies_gone(health, found)}"
        text += "; how far behind: unknown" if any(map(is_unread, found)) else ""
        step = error_named(error).next_step.replace("these topics", some_of(list(dict.fromkeys(failure.topic for failure in found)), NAMED))
        yield Reason(Health.FAILING, text, step)


def _failed_run(health: FlowHealth, now: float) -> Iterator[Reason]:
    """Failed syncs of a run that follows; then the last run, unless all its failures have reasons of their own (stopped, held back)."""
    newest, run = health.newest_run, health.last_run
    if newest is not None and _goes_on(newest):
        yield from _failed_syncs_of(newest)
    if run is None or run["state"] not in {RunState.FAILED, RunState.PARTLY_FAILED}:
        return
    failed = _not_told(run["failed"], health)
    found = [(entry["error"], whole_problem(entry)) for entry in failed] + failed_syncs(run)
    named = list(dict.fromkeys(problem for _, problem in found))
    if run["failed"] and not named:
        return
    over = health.problem is None and any(map(could_not_reach, failed[:1]))  # a cluster did not answer, and both answer now
    died = not named and not run["finished"]
    text = _how_it_ended(run, named, now) + ("; now both clusters answer" if over else "")
    step = _RUN if over or died else _step_after(failed, found[0][0] if found else "")
    yield Reason(Health.FAILING, text, step, Step.RUN if step == _RUN else None)


def _failed_syncs_of(run: Mapping[str, Any]) -> Iterator[Reason]:
    """The failed syncs of a run that goes on, in one reason."""
    if broken := failed_syncs(run):
        named = [problem for _, problem in broken]
        text = f"run {run['run_id']}, which goes on: {_named(named, len(named))}"
        yield Reason(Health.FAILING, text, error_named(broken[0][0]).next_step)


def _not_told(failed: Iterable[Mapping[str, Any]], health: FlowHealth) -> list[Mapping[str, Any]]:
    """The failures of a run without those of partitions that are stopped or held back: these have reasons of their own."""
    told = {(failure.topic, failure.error) for failure in health.stopped}
    told |= {(held.topic, TransactionHangs.__name__) for held in health.held}
    return [entry for entry in failed if (entry["topic"], entry["error"]) not in told]


def _how_it_ended(run: Mapping[str, Any], problems: Sequence[str], now: float) -> str:
    if problems or run["finished"]:
        return f"{_LAST_RUN}{run['state']}{ago(run, now)}{': ' if problems else ''}{_named(problems, len(problems))}"
    return f"{_LAST_RUN}began{ago(run, now)} and left no result: it died"


def _step_after(failed: Sequence[Mapping[str, Any]], error: str) -> str:
    """What to do after a run failed. `error`: of the first failure of the copy or of a sync."""
    if failed and not failed[0]["error"]:  # a person stopped it
        return _RUN
    if failed and failed[0]["error"].startswith("task "):  # as joined_runs names a task of Airflow
        return _READ_LOG
    return error_named(error).next_step


def _missing(health: FlowHealth, now: float) -> Iterator[Reason]:
    if not health.missing:
        return
    topics = missing_by_topic(health.missing)
    records = f"{count_of(sum(topics.values()), 'record')} missing in {count_of(len(topics), 'topic')}"
    obstacle = next((entry.obstacle for entry in health.missing if entry.obstacle), "their times could not be read: try again")
    command = backfill_command(flow_command("backfill", health.flow, health.config), health.missing, now)
    seeded = "" if health.seeded is None else f", last used {minute(parse_time(health.seeded))}"
    text = f"{records}: {_named(list(topics), len(topics), ', ')} ({_BY_SEED.format(seeded)}; {_if_meant(health.missing, now)})"
    yield Reason(Health.MISSING, text, command or obstacle, Step.BACKFILL if command else None)


def _if_meant(missing: Iterable[Missing], now: float) -> str:
    """What a person does who wanted this, and when the source drops the first of them."""
    first = min((entry.dropped_at for entry in missing if entry.dropped_at is not None), default=None)
    when = "" if first is None else f", the first of them in {span(first - now)}" if first > now else ", which may be at any moment"
    return f"if it was meant, do nothing: this warning stays until the source has dropped them{when}"


def _idle(health: FlowHealth, now: float) -> Iterator[Reason]:
    """No run comes, or none ever came."""
    newest = health.newest_run
    if health.paused:
        yield Reason(Health.PAUSED, "its DAG is paused, so no run starts", _unpause(health, now), Step.UNPAUSE)
    begins = newest is not None and _goes_on(newest) and seconds_since(newest, now) < SILENT_SECONDS
    if not (health.ran or health.last_run is not None or begins):
        how = ", then start a run" if health.next_due is None else ": a run then starts at once"
        step = f"if its DAG is paused in Airflow, unpause it{how}; if not, {_RUN}"
        yield Reason(Health.NEVER_RAN, "nothing was copied yet", step, Step.RUN)


def _unpause(health: FlowHealth, now: float) -> str:
    """What to do about a pause. Airflow creates the latest run that was due as soon as the DAG is unpaused, of a new DAG too."""
    if health.next_due is None:
        return "unpause the DAG in Airflow; a run that somebody starts waits until then"
    due = "if a run was due meanwhile, it" if health.ran or health.last_run is not None else "the run that was due last"
    return f"unpause the DAG in Airflow: {due} then starts at once, and the {told_next(health.next_due, now)}"


def _queued(health: FlowHealth, now: float) -> Iterator[Reason]:
    run = health.newest_run
    if run is not None and run["state"] == RunState.QUEUED:
        step = "wait; if the run stays queued, see whether the DAG is paused, the scheduler is up, and a slot is free"
        yield Reason(Health.QUEUED, f"run {run['run_id']} was queued{ago(run, now)}", step)


def _lagging(health: FlowHealth, _: float) -> Iterator[Reason]:
    for key, found in groupby(health.broken, lambda broken: broken.key):
        broken = list(found)
        names = [entry.topic for entry in broken if entry.topic]
        if not names:  # the deadline
            yield Reason(Health.LAGGING, str(broken[0]), "look whether the DAG is paused, or the scheduler is down")
            continue
        yield Reason(Health.LAGGING, f"{_beyond(broken)} ({key}): {_named(names, len(names), ', ')}", step_of(key), Step.RUN)
    lag, interval = health.lag, health.interval_seconds
    if not health.read:
        return
    if interval is not None and lag.seconds > INTERVALS_BEHIND * interval:
        text = f"behind by {span(lag.seconds)}, more than {INTERVALS_BEHIND} intervals of its schedule ({span(interval)})"
        yield Reason(Health.LAGGING, text, _RUN_MORE)
    if lag.headroom_seconds is None:
        return
    # The next run may begin a whole interval from now.
    needs = (interval or 0.0) + (lag.records / health.records_per_second if health.records_per_second else 0.0)
    if lag.headroom_seconds <= 0:
        yield Reason(Health.LAGGING, "the source may drop the oldest uncopied records at any moment", RUN_NOW, Step.RUN)
    elif needs and lag.headroom_seconds < needs:
        text = f"the source drops uncopied records in {span(lag.headroom_seconds)}; copying them takes about {span(needs)}"
        yield Reason(Health.LAGGING, text, RUN_NOW, Step.RUN)


def _groups(health: FlowHealth, _: float) -> Iterator[Reason]:
    if not health.held_groups:
        return
    total, named = health.held_groups["total"], [f"{entry['what']}, because {entry['reason']}" for entry in health.held_groups["named"]]
    word = f"{count_of(total, 'group')} not synced"  # no record lags
    source, target = health.flow.split("->", 1)
    outcome = f"after a failover, such a group goes on at its offsets on {target}, not at those from {source}, and reads records again"
    yield Reason(Health.LAGGING, f"{word}: {_named(named, total)}; {outcome}", _FREE_GROUPS, word=word)


def _left_out(health: FlowHealth, _: float) -> Iterator[Reason]:
    known = health.problem is None or not health.problem.unreachable  # what was read before may be wrong now
    if known and (found := left_out_topics(health)) is not None:
        yield Reason(Health.LEFT_OUT, found.text, found.next_step, word=found.word)


_JUDGES: tuple[Callable[[FlowHealth, float], Iterator[Reason]], ...] = (
    _unreachable, _losses, _failing, _missing, _idle, _lagging, _groups, _queued, _left_out,
)  # fmt: skip
_NOTHING_LEFT = "nothing is left to copy; ferry status also looks for records that a seed left out"
_BY_SEED = "somebody told Ferry to skip them, with ferry seed{}; if that was a mistake, a backfill copies them, and nothing twice"
_LAST_RUN = "the last run "
_RUN = "start a run now, in Airflow or with ferry run"
_READ_LOG = f"read the log of that task in Airflow; if what it names is over, {_RUN}"
_FREE_GROUPS = (
    "if the members run there by mistake, stop them, and the next sync sets the group to its offsets from the source; "
    "if the application was moved there, leave the group out with groups.exclude"
)
_RUN_MORE = "see whether runs are under way, and how long they take; run more often, or raise ferry.max.rate.mb if it is set"
# By the kind of a loss: what happened.
_LOST = {"loss": "the source deleted {} that Ferry had not copied", "skipped": "the target refused {}"}
_LOST_IN_ANY_WAY = "lost for good: {}"


def _goes_on(run: Mapping[str, Any] | None) -> bool:
    return run is not None and run["state"] in UNDER_WAY


def _beyond(broken: Sequence[BrokenLimit]) -> str:
    """The limit of lag or headroom that these topics exceed, in words."""
    key, limit = broken[0].key, broken[0].limit
    topics, be = count_of(len(broken), "topic"), "is" if len(broken) == 1 else "are"
    if key == HEADROOM_SECONDS:
        return f"the source deletes uncopied records of {topics} in less than {span(limit)}"
    return f"{topics} {be} more than {span(limit) if key == LAG_SECONDS else count_of(round(limit), 'record')} behind"


def _named(names: Sequence[str], total: int, between: str = "; ") -> str:
    more = total - min(len(names), NAMED)
    return between.join(names[:NAMED]) + (f"{between}and {more:,} more" if more else "")
