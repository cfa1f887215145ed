"""Runs of a flow as the page lists them: records of the runs topic, joined with Airflow's DAG runs (pure).

A run that died before its report left only an `opened` record, and a run that could not reach the target left none; Airflow knows both.
Only the runs topic knows runs by `ferry run`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from ferry.copying.committed import Progress
from ferry.errors import ArgumentError, ClusterUnreachable, span, time_text
from ferry.ledger.run_summary import RunState
from ferry.ledger.sync_outcome import NOT_DUE
from ferry.syncs.names import SyncName

# States of runs that go on.
UNDER_WAY = frozenset({RunState.RUNNING, RunState.FOLLOWING})
# States that say nothing about a flow's health: the run has not ended, or it copied nothing on purpose, or its arguments were wrong.
NO_NEWS = UNDER_WAY | {RunState.QUEUED, RunState.DRY, RunState.REFUSED}
# States in which nothing failed.
_WELL = frozenset({RunState.DONE, RunState.NOTHING_NEW})
# What the runs topic says about a run without a result; "": it does not know the run.
_WITHOUT_RESULT = frozenset({RunState.RUNNING, RunState.FOLLOWING, ""})
# Ids of tasks of a flow's DAG; the ids of syncs begin with SYNC_TASKS.
PLAN_TASK, PREPARE_TASK, COPY_TASK = "plan_run", "prepare_topics", "copy_records"
ANNOUNCE_TASK, LIMITS_TASK = "announce_topics", "check_limits"
REPORT_TASK, SYNC_TASKS = "report_outcome", "sync_"
# The ids of seeds begin so. The runs topic has them too, but they copy nothing.
_SEED = "seed__"
_AIRFLOW_RUNS, _AIRFLOW_FAILED = frozenset({"queued", "running"}), "failed"


@dataclass(frozen=True)
class DagRunFacts:
    """One DAG run in Airflow. Times in ISO 8601, None: not yet."""

    run_id: str
    state: str
    started: str | None
    finished: str | None
    url: str
    failed_tasks: tuple[str, ...] = ()  # their names, if the run failed
    dry: bool = False  # it was a dry run
    backfill: bool = False  # it copies the records of an interval that the ledger lacks
    topics: tuple[str, ...] = ()  # it copies only these; empty: all
    # Why it failed, and the name of the error, by the run's note (airflow/run_note.py); empty: it does not say. Without an error: a person
    # stopped it.
    reason: tuple[str, str] = ("", "")

    def is_filling(self, topic: str) -> bool:
        """Whether it copies what the ledger lacks of the topic, and has not ended."""
        return self.backfill and not self.dry and self.finished is None and (not self.topics or topic in self.topics)


def tells_health(run: Mapping[str, Any]) -> bool:
    """Whether the run says something about the flow's health."""
    return run["state"] not in NO_NEWS and not run["run_id"].startswith(_SEED)


def newest_run(runs: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The first of `runs` that is no seed."""
    return next((dict(run) for run in runs if not run["run_id"].startswith(_SEED)), None)


def last_seed(runs: Iterable[Mapping[str, Any]]) -> str | None:
    """When the last seed of `runs`, newest first, began (ISO); None: there is none."""
    return next((run["started"] for run in runs if run["run_id"].startswith(_SEED)), None)


def judged(run: dict[str, Any]) -> dict[str, Any]:
    """The run as `refused` if only its arguments were wrong. Of a run that only Airflow knows, `cause` is the error."""
    refused = run["failed"] and all(ArgumentError.__name__ in {entry["error"], entry.get("cause")} for entry in run["failed"])
    return {**run, "state": RunState.REFUSED} if refused else run


def last_ended(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The newest run that says something about the flow's health. `runs`: newest first.

    It gets two more keys. `newest`: no run began after it. `superseded`: the id of the run before it, if a newer run took over from that
    one before its end; otherwise empty.
    """
    for index, (run, before) in enumerate(zip_longest(runs, runs[1:])):
        if tells_health(run):
            superseded = before is not None and before["state"] == RunState.SUPERSEDED
            return {**run, "newest": index == 0, "superseded": before["run_id"] if superseded else ""}
    return None


def joined_runs(kept: Iterable[Mapping[str, Any]], dag_runs: Iterable[DagRunFacts], limit: int) -> list[dict[str, Any]]:
    """One document for each run, newest first, at most `limit`. `kept`: as of runs_reading, in any order."""
    known = {str(run["run_id"]): dict(run) for run in kept}
    for facts in dag_runs:
        known[facts.run_id] = _with_airflow(known.get(facts.run_id), facts)
    return sorted(known.values(), key=lambda run: (run["started"] or "9999", run["run_id"]), reverse=True)[:limit]


def _with_airflow(run: dict[str, Any] | None, facts: DagRunFacts) -> dict[str, Any]:
    if run is None:
        run = {**empty_run(facts.run_id), "started": facts.started, "finished": facts.finished}
    run = {**run, "dag_run_url": facts.url, "airflow_state": facts.state}
    if facts.state in _AIRFLOW_RUNS:
        return {**run, "state": run["state"] if run["state"] == RunState.FOLLOWING else RunState(facts.state), "finished": None}
    if facts.state == _AIRFLOW_FAILED and run["state"] in _WELL | _WITHOUT_RESULT:
        # If a limit is broken or could not be checked, the copy itself did not fail.
        state = run["state"] if run["state"] in _WELL and facts.failed_tasks == (LIMITS_TASK,) else RunState.FAILED
        named = [{"topic": "", "partition": -1, "error": error, "problem": why, "cause": cause} for error, why, cause in _failures(facts)]
        return judged({**run, "state": state, "failed": [*run["failed"], *named], "failed_total": run["failed_total"] + len(named)})
    if run["state"] in _WITHOUT_RESULT:
        return {**run, "state": RunState.DRY if facts.dry else RunState.DONE}
    return run


def _failures(facts: DagRunFacts) -> list[tuple[str, str, str]]:
    """Error, problem and cause of each failure that Airflow knows. In a run that a person stopped, this is the cause of every failure."""
    why, cause = facts.reason
    if why and not cause:
        return [("", why, "")]
    # The report fails too when an earlier task has failed.
    tasks = [task for task in facts.failed_tasks if task != REPORT_TASK] or facts.failed_tasks
    if len(tasks) != 1 or not why:
        why, cause = "its log in Airflow says why", ""
    return [(f"task {task} failed", why, cause) for task in tasks]


def empty_run(run_id: str) -> dict[str, Any]:
    """A run of which only the id is known: numbers are null."""
    return {
        "run_id": run_id,
        "dag_run_url": None,
        "airflow_state": None,
        "started": None,
        "finished": None,
        "state": "",
        "bound": None,
        "records": None,
        "bytes": None,
        "seconds": None,
        "cpu_seconds": None,
        "topics": [],
        "topics_total": 0,
        "losses": [],
        "losses_total": 0,
        "failed": [],
        "failed_total": 0,
        "syncs": {},
        "lag_records": None,
        "lag_seconds": None,
        "headroom_seconds": None,
        "delay_seconds": None,
    }


def failed_syncs(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The error and the first problem of each sync that failed; an older Ferry has kept neither."""
    failed = {name: counts for name, counts in run["syncs"].items() if counts["failed"]}
    whys = {name: counts.get("why") or {"error": "", "problem": ""} for name, counts in failed.items()}
    return [(why["error"], f"sync {name}{why['problem'] and ': '}{why['problem']}") for name, why in whys.items()]


def held_groups(runs: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The groups that the last sync of groups could not write (as of run_summary.sync_counts); None: there were none. `runs`: newest first.

    A sync that was not due says nothing. If a sync was left out for another reason, earlier syncs no longer count.
    """
    outcomes: Iterable[Mapping[str, Any] | None] = (run["syncs"].get(SyncName.GROUPS.value) for run in runs)
    said = (outcome for outcome in outcomes if outcome and not outcome.get("left_out", "").startswith(NOT_DUE))
    last = next(said, None)
    return last.get("held") if last else None


def seconds_since(run: Mapping[str, Any], now: float) -> float:
    """Since it ended or, if it has not, since it began; -1: not known."""
    at = run.get("finished") or run.get("started")
    return max(0.0, now - datetime.fromisoformat(at).timestamp()) if at else -1.0


def ago(run: Mapping[str, Any], now: float) -> str:
    seconds = seconds_since(run, now)
    return f" {span(seconds)} ago" if seconds >= 0 else ""


def told_under_way(run: Mapping[str, Any], now: float, commits: Progress | None = None, left: int = 0) -> str:
    """In words. The id of a run in Airflow looks like a time, but it is not the time when the run began.

    `commits`: those of the last minute; None: nobody looked. `left`: how many records the run has still to copy; 0: not known.
    """
    started = run.get("started")
    began = f"{ago(run, now)}, at {time_text(round(datetime.fromisoformat(started).timestamp() * 1000))}," if started else ""
    if commits is not None and commits.since is not None:
        return f"a run is copying{commits.time_left(left)}: it began{began.removesuffix(',')} (id {run['run_id']})"
    if run.get("airflow_state") == "running":
        return f"a run is under way: it began{began.removesuffix(',')} (id {run['run_id']})"
    idle = "" if commits is None else "; it committed nothing in the last minute"
    return f"a run began{began} and has not ended (id {run['run_id']}){idle}"


def told_gone(run: Mapping[str, Any]) -> str:
    """What happened to the run, of `FlowHealth.gone`, and what to do."""
    return f"run {run['run_id']} should follow since {run['since']} until {run['until']}, but it does not go on: start the next run"


def whole_problem(failure: Mapping[str, Any]) -> str:
    """A failure of a run with its problem, because its next step is about the problem. It names the topic, but no partition."""
    told = failure["problem"] if could_not_reach(failure) or not failure["error"] else f"{failure['error']}: {failure['problem']}"
    return f"{failure['topic']}: {told}" if failure["topic"] else told


def could_not_reach(failure: Mapping[str, Any]) -> bool:
    """Whether only Airflow knows the failure, because a cluster did not answer."""
    return bool(failure.get("cause") == ClusterUnreachable.__name__)


# What the history keeps of a run, besides `at`.
_OF_RUN = ("run_id", "state", "bound", "records", "bytes", "seconds", "lag_records", "lag_seconds", "headroom_seconds", "delay_seconds")
# Nobody could distinguish more lines in a chart.
TOPICS_DRAWN = 5


def history_of(runs: Iterable[Mapping[str, Any]], since: str) -> dict[str, Any]:
    """`points`: one for each run that ended at or after `since` (ISO), oldest first. `topics`: of which most bytes were copied.

    `at`: when the run ended; of one that died, when it began. `by_topic`: records and bytes of each of `topics`; null: not known. A run
    without a summary is here only if it failed: all that is known is that.
    """
    ended = [
        {**run, "at": run["finished"] or run["started"]} for run in runs if run["records"] is not None or run["state"] == RunState.FAILED
    ]
    ended = sorted((run for run in ended if run["at"] and run["at"] >= since), key=lambda run: run["at"])
    sizes: Counter[str] = Counter()
    for run in ended:
        sizes.update({one["topic"]: one["bytes"] for one in run["topics"]})
    topics = [topic for topic, _ in sizes.most_common(TOPICS_DRAWN)]
    points = []
    for run in ended:
        copied = {one["topic"]: [one["records"], one["bytes"]] for one in run["topics"]}
        points.append({name: run[name] for name in ("at", *_OF_RUN)} | {"by_topic": [copied.get(topic) for topic in topics]})
    return {"topics": topics, "points": points}


# Enough to even out one slow run, and few enough that the figure is of today.
RUNS_OF_SPEED = 5


def copy_speed(kept: Iterable[Mapping[str, Any]]) -> float | None:
    """Records per second of the newest runs that copied something; None: none did."""
    copied = sorted((run for run in kept if run["records"] and run["seconds"]), key=lambda run: run["finished"] or "")[-RUNS_OF_SPEED:]
    seconds = sum(run["seconds"] for run in copied)
    return sum(run["records"] for run in copied) / seconds if seconds else None
