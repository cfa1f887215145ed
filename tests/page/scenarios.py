"""What the fixture server knows in each scenario: flows and snapshots, as the page's service would hold them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.page import made_up_reads as made_up

from ferry.airflow.page_flows import Known
from ferry.config.settings import AlertSettings
from ferry.ledger.run_report import Skipped
from ferry.ledger.run_summary import RunLag
from ferry.ledger.runs_topic import RunOpened
from ferry.monitoring.limits import broken_limits
from ferry.monitoring.missing import COMPACTED, Missing
from ferry.monitoring.runs import DagRunFacts
from ferry.page.documents import PageFlow
from ferry.page.problem import Problem
from ferry.page.reads import ReadName
from ferry.page.snapshots import Outcome, Snapshot
from ferry.pipeline.tables import left_out_lines

Reads = dict[ReadName, Callable[[str], Any]]
UNREACHABLE = Problem(
    "ClusterUnreachable",
    "cluster A (a.example:9092) did not answer within 10 s",
    "check that the cluster is up and that A.bootstrap.servers is right",
)
CONFIG = Problem("ConfigError", "FERRY_CONFIG is not set", "set FERRY_CONFIG to the path of your mm2.properties for the api-server")
# A run of the fixture's Airflow needs so long; the page asks several times.
RUN_SECONDS = 1.5
MANY = 2_000
FLOWS = 40
FLOW = "A->B"


def facts(source: str = "A", target: str = "B") -> PageFlow:
    """An hourly flow."""
    dag = f"ferry.{source}.{target}"
    return PageFlow(f"{source}->{target}", source, target, dag, f"{dag}.verify", "0 * * * *", 3600.0, True, "mm2.properties")


def reads(**changed: Any) -> Reads:
    """A flow in order; what is given is found instead."""
    hourly = [made_up.run_summary(number, "nothing new" if number % 11 == 5 else "done") for number in range(72)]
    found: dict[str, Any] = {
        "overview": made_up.overview(),
        "runs": made_up.runs(hourly, [made_up.verify("verify__1")]),
        "progress": {},
        "coverage": made_up.coverage,
        "groups": made_up.groups(),
        "group": made_up.group,
        "drift": made_up.drift(),
        **changed,
    }
    return {ReadName(name): data if callable(data) else (lambda _, data=data: data) for name, data in found.items()}


@dataclass
class Stage:
    """One browser's world. `unread`: until the test says that the first reading has ended. `posted`: what it asked Airflow to run.
    `changed`: what else it changed there. `ended`: other runs that Airflow knows. `dags`: those that it has. `recovering`: the run of a DAG
    of recovery, whose `tasks` are in these states. `notes`: of runs.
    """

    known: Known
    reads: dict[str, Reads] = field(default_factory=dict)
    problems: dict[str, Problem] = field(default_factory=dict)
    ages: dict[str, float] = field(default_factory=dict)
    unread: bool = False
    posted: list[dict[str, Any]] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)
    run_seconds: float = RUN_SECONDS
    ended: tuple[DagRunFacts, ...] = ()
    paused: bool = False
    dags: Mapping[str, str] = field(default_factory=dict)
    recovering: Mapping[str, DagRunFacts] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def look(self, flow: str, name: ReadName, argument: str = "", *, again: bool = False) -> Outcome:
        """As PageService.look: what is known now. When it is read again, the clusters answer."""
        if self.unread:
            return Snapshot(refreshing=True), None
        if again:
            self.problems.pop(flow, None)
            self.ages.pop(flow, None)
        data = self.reads[flow][name](argument)
        if name is ReadName.COVERAGE and self._closed(argument):
            data = made_up.coverage(argument, closed=True)
        return Snapshot(data, time.time() - self.ages.get(flow, 4.0), self.problems.get(flow)), None

    def dag_runs(self, dag_id: str, limit: int) -> tuple[DagRunFacts, ...]:
        """Runs that were posted and others, as Airflow's database would tell."""
        found = [run for run in self.posted if run["dag_id"] == dag_id][-limit:]
        others = (self.recovering[dag_id],) if dag_id in self.recovering else () if dag_id.count(".") > 2 else self.ended
        return others + tuple(
            DagRunFacts(
                run["dag_run_id"],
                self.state(run),
                run["logical_date"] or made_up.iso(1),
                run["logical_date"] or made_up.iso(0) if self.state(run) == "success" else None,
                f"/dags/{dag_id}/runs/{run['dag_run_id']}",
                dry=bool((run["conf"] or {}).get("dry_run")),
                backfill=(run["conf"] or {}).get("bound") == "interval",
                topics=tuple((run["conf"] or {}).get("topics", ())),
            )
            for run in reversed(found)
        )

    def end(self, run_id: str, state: str) -> None:
        """Put a run of `ended` into a state."""
        ended = None if state == "queued" else made_up.iso(0)
        tasks = ("copy_records",) if state == "failed" else ()
        why = ("somebody stopped it on the Ferry page", "")
        self.ended = tuple(
            replace(run, state=state, finished=ended, failed_tasks=tasks, reason=why) if run.run_id == run_id else run for run in self.ended
        )

    def tasks_of(self, run_id: str) -> dict[str, str]:
        """How far each task of a run of recovery is. In a dry run the one that plans leaves its plan, and skips itself."""
        dry = any((run["conf"] or {}).get("dry_run") for run in self.posted if run["dag_run_id"] == run_id)
        return {**self.tasks, "plan_groups": "skipped"} if dry else self.tasks

    def state(self, run: dict[str, Any]) -> str:
        """How far a posted run is."""
        return "success" if time.monotonic() - run["posted"] > self.run_seconds else "running"

    def _closed(self, topic: str) -> bool:
        return any(topic in (run["conf"] or {}).get("topics", ()) and self.state(run) == "success" for run in self.posted)


def healthy() -> Stage:
    """Two flows in order."""
    back = replace(facts("B", "C"), schedule="*/15 * * * *", interval_seconds=900.0)
    return Stage(Known((facts(), back)), {"A->B": reads(), "B->C": reads()})


def lagging() -> Stage:
    """Beyond a limit, and behind its schedule. So the last run is red in Airflow, although it copied all."""
    behind = [made_up.run_summary(number) for number in range(3, 72)]
    seen = made_up.overview(lag=5_000)
    broken = broken_limits(AlertSettings(lag_records=10_000), seen.health.partitions)
    seen = replace(seen, health=replace(seen.health, broken=broken))
    newest, why = behind[0], ("the copy is fine, but a limit is broken: topic users is too far behind", "LimitsBroken")
    red = DagRunFacts(newest.run_id, "failed", newest.started, newest.finished, "/dags/d/runs/r", ("check_limits",), reason=why)
    return Stage(Known((facts(),)), {"A->B": reads(overview=seen, runs=made_up.runs(behind))}, ended=(red,))


def following() -> Stage:
    """The newest run follows, less than a second behind."""
    until = made_up.iso(-86_400)
    run = RunOpened("scheduled__follows", made_up.iso(1_200), f"following until {until}", follow_until=until)
    rows = [made_up.partition_row("orders", number, 40 * number, seconds_a_record=0.01) for number in range(2)]

    def progress(_: str) -> dict[str, Any]:
        newest = made_up.receipt("orders", 0, 8_000, made_up.END)
        return made_up.progress(run, [replace(newest, max_timestamp=round((time.time() - 1.2) * 1000))])

    found = {"overview": made_up.overview_of(rows), "runs": made_up.runs([made_up.run_summary(1)], opened=[run]), "progress": progress}
    return Stage(Known((facts(),)), {"A->B": reads(**found)})


def copying() -> Stage:
    """A run copies: it has taken 4,000 of 9,000 records of each of three partitions at the first look, and goes on. Another run waits."""
    run = RunOpened("manual__copies", made_up.iso(30), "latest")
    rows = [made_up.partition_row(name, 3, made_up.END) for name in ("orders", "clicks", made_up.LONGEST)]
    looks = itertools.count(4)

    def progress(_: str) -> dict[str, Any]:
        return made_up.progress(
            run,
            [
                made_up.receipt(row.topic, row.partition, 1_000 * number, 1_000 * (number + 1))
                for number in range(min(8, next(looks)))
                for row in rows
            ],
        )

    found = {"overview": made_up.overview_of(rows), "runs": made_up.runs([made_up.run_summary(1)], opened=[run]), "progress": progress}
    waits = DagRunFacts("manual__waits", "queued", made_up.iso(5), None, "/dags/d/runs/waits")
    return Stage(Known((facts(),)), {"A->B": reads(**found)}, ended=(waits,))


def ending() -> Stage:
    """A try of a run has ended before all was copied; the run goes on."""
    run = RunOpened("manual__ends", made_up.iso(30), "latest")
    half = made_up.progress(run, [made_up.receipt("orders", 0, 0, 4_500)], over=True)
    seen = made_up.overview_of([made_up.partition_row("orders", 0, made_up.END)])
    found = {"overview": seen, "runs": made_up.runs([made_up.run_summary(1)], opened=[run]), "progress": half}
    return Stage(Known((facts(),)), {"A->B": reads(**found)})


def loss() -> Stage:
    """Records lost that nobody acknowledged."""
    lost = [{"topic": "payments", "partition": 0, "upstream_start": 3_000, "upstream_end": 3_120, "reason": "dropped", "kind": "loss"}]
    summaries = [made_up.run_summary(1, "data lost", losses=tuple(lost), losses_total=1), *(made_up.run_summary(n) for n in range(2, 40))]
    found = {"overview": made_up.with_losses(made_up.overview(lag=2)), "runs": made_up.runs(summaries)}
    return Stage(Known((facts(),)), {"A->B": reads(**found)})


def paused() -> Stage:
    """A new flow: nobody has unpaused its DAG, and somebody has started a run."""
    run = DagRunFacts("manual__first", "queued", made_up.iso(200), None, "/dags/d/runs/first")
    found = {"overview": made_up.overview(lag=940, ran=False), "runs": made_up.runs([])}
    return Stage(Known((facts(),)), {"A->B": reads(**found)}, ended=(run,), paused=True)


def new() -> Stage:
    """A flow that never ran; its DAG is on."""
    return Stage(Known((facts(),)), {"A->B": reads(overview=made_up.overview(lag=940, ran=False), runs=made_up.runs([]))})


def queued() -> Stage:
    """A flow in order, whose next run waits."""
    return replace(healthy(), ended=(DagRunFacts("manual__next", "queued", made_up.iso(45), None, "/dags/d/runs/next"),))


def refused() -> Stage:
    """A flow in order, after a run whose topic was mistyped."""
    why = ("flow A->B does not copy topic ordrs", "ArgumentError")
    run = DagRunFacts(
        "manual__typo", "failed", made_up.iso(45), made_up.iso(30), "/dags/d/runs/typo", ("plan_run", "report_outcome"), reason=why
    )
    return replace(healthy(), ended=(run,))


def missing() -> Stage:
    """A seed passed over records of two topics."""
    gaps = (Missing("orders", 0, 0, 2_500, 1_000), Missing("orders", 1, 0, 1_200, 1_000), Missing("users", 0, 0, 7, obstacle=COMPACTED))
    return Stage(Known((facts(),)), {"A->B": reads(overview=made_up.overview(missing=gaps))})


def failing() -> Stage:
    """The last run failed in part, a transaction hangs, a verify found differences."""
    failed = [{"topic": "orders", "partition": 2, "error": "SourceDataLost", "problem": "the source dropped offsets 100 to 140"}]
    summaries = [
        made_up.run_summary(0, "partly failed", failed=tuple(failed), failed_total=1),
        *(made_up.run_summary(n) for n in range(1, 40)),
    ]
    found = {
        "overview": made_up.with_troubles(made_up.overview(lag=7)),
        "runs": made_up.runs(summaries, [made_up.verify("verify__0"), made_up.verify("verify__1", differences=7)]),
    }
    return Stage(Known((facts(),)), {"A->B": reads(**found)})


def unreachable() -> Stage:
    """A is gone since 20 minutes; the other flow is fine."""
    return replace(healthy(), problems={"A->B": UNREACHABLE}, ages={"A->B": 1_200.0})


def dropped() -> Stage:
    """A topic was taken out of the config after it had been copied; a group cannot be synced."""
    step = "put it back into the property topics, and the next run goes on where the copy stopped"
    left_out = Skipped("payments", f"not in the property topics (topics = orders), but it was copied before; {step}", True)
    other = tuple(left_out_lines([Skipped("local", "not in the property topics", False)]))
    seen = replace(made_up.overview(left_out=(left_out,), left_out_records=400), left_out=other)
    return Stage(Known((facts(),)), {"A->B": reads(overview=seen)})


def held() -> Stage:
    """A group has members on the target."""
    reason = "it has 1 member on B (app), and only groups without members are written"
    held_up = {"total": 1, "named": [{"what": "group billing", "reason": reason}]}
    return Stage(Known((facts(),)), {"A->B": reads(runs={**made_up.runs([made_up.run_summary(1)]), "held": held_up})})


def nothing() -> Stage:
    """A config without a flow."""
    return Stage(Known())


def idle() -> Stage:
    """A flow that has nothing to do yet."""
    found = {
        "overview": made_up.overview_of(()),
        "runs": made_up.runs([]),
        "groups": made_up.groups([]),
        "drift": made_up.drift(differs=False),
    }
    return Stage(Known((facts(),)), {"A->B": reads(**found)})


def config() -> Stage:
    """No config."""
    return Stage(Known(problem=CONFIG))


def many() -> Stage:
    """As many topics as anybody has."""
    rows = made_up.overview([f"topic-{number:04}" for number in range(MANY)], lag=1, partitions=2)
    return Stage(Known((facts(),)), {"A->B": reads(overview=rows, groups=made_up.groups([f"group-{n:04}" for n in range(MANY)]))})


def broken() -> Stage:
    """Two runs failed: one copied nothing, the other died."""
    nothing = {"records": 0, "bytes": 0, "topics": (), "topics_total": 0, "delay_seconds": None, "lag": RunLag()}
    why = {"topic": "", "partition": -1, "error": "ClusterUnreachable", "problem": "cluster B does not answer"}
    runs = [made_up.run_summary(n) if n != 5 else made_up.run_summary(n, "failed", failed=(why,), **nothing) for n in range(40)]
    # A run is taken for dead if a newer one has begun.
    opened = [RunOpened("died", made_up.iso(36_500), "latest"), RunOpened(runs[0].run_id, runs[0].started, "latest")]
    return Stage(Known((facts(),)), {FLOW: reads(runs=made_up.runs(runs, opened=opened))})


def quiet() -> Stage:
    """No run had anything to copy."""
    runs = [made_up.run_summary(n, "nothing new", lag=RunLag(0, 0.0)) for n in range(5)]
    return Stage(Known((facts(),)), {FLOW: reads(runs=made_up.runs(runs))})


def forty() -> Stage:
    """Forty flows; some are ill in different ways, and one alias is long."""
    known, found, problems, ages = [], {}, {}, {}
    ill = {5: lagging, 11: loss, 17: missing, 23: failing, 29: new}
    for number in range(FLOWS):
        alias = "a-very-long-alias-of-a-cluster" if number == 2 else f"store-{number:02}"
        fact = facts(alias, "hub")
        known.append(fact)
        found[fact.flow] = ill[number]().reads[FLOW] if number in ill else reads(runs=made_up.runs([made_up.run_summary(1)]))
    gone = known[31].flow
    problems[gone], ages[gone] = UNREACHABLE, 1_200.0
    return Stage(Known(tuple(known)), found, problems, ages)


def hostile() -> Stage:
    """Names and reasons that are HTML."""
    name = made_up.HOSTILE
    failed = [{"topic": name, "partition": 0, "error": "SourceDataLost", "problem": name}]
    change = [made_up.run_summary(0, "partly failed", failed=tuple(failed), failed_total=1, topics=((name, 1, 1),), topics_total=1)]
    drift = made_up.drift()
    drift["configs"][0].update(what=name, detail=f"x: {name} -> {name}", reason=name)
    found = {
        "overview": made_up.with_losses(made_up.overview(["orders", name], lag=3), name, name),
        "groups": made_up.groups(["a", "b", name], name),
        "group": lambda group: made_up.group(group, name),
        "runs": made_up.runs(change, [made_up.verify("verify__1", differences=2, topic=name)]),
        "drift": drift,
    }
    return Stage(Known((facts(),)), {"A->B": reads(**found)})


def slow() -> Stage:
    """Nothing was read yet; it is when the test says so."""
    return replace(healthy(), unread=True)


def filling() -> Stage:
    """A colleague has started a backfill that takes long."""
    conf = {"bound": "interval", "topics": ["orders"]}
    run = {"dag_id": "ferry.A.B", "dag_run_id": "manual__colleague", "conf": conf, "logical_date": made_up.iso(90)}
    return replace(healthy(), posted=[{**run, "posted": time.monotonic()}], run_seconds=3_600.0)


def running() -> Stage:
    """A flow in order with a run under way, behind one that failed."""
    runs = (
        DagRunFacts("manual__now", "running", made_up.iso(3), None, "/dags/ferry.A.B/runs/manual__now"),
        DagRunFacts("manual__died", "failed", made_up.iso(50), made_up.iso(40), "/dags/ferry.A.B/runs/manual__died", ("copy_records",)),
    )
    return replace(healthy(), ended=runs)


def plain() -> Stage:
    """The same, of a flow without transactions."""
    return replace(running(), known=Known((replace(facts(), exactly_once=False),)))


def formulas() -> Stage:
    """Groups with names that a spreadsheet takes for formulas."""
    return Stage(Known((facts(),)), {"A->B": reads(groups=made_up.groups(["=1+1", "+1", "-1", "@SUM(1)", 'a "quoted", name']))})


KINDS = ("failover", "failback", "cutover")


def with_recovery() -> Stage:
    """Its DAGs of recovery are there, and nobody has started one. The tasks of one that is started are done at once."""
    dags = {facts().dag_id: "", **{f"{facts().dag_id}.{kind}": "" for kind in KINDS}}
    tasks = dict.fromkeys(("check_clusters", "plan_groups"), "success")
    return Stage(Known((facts(),)), {"A->B": reads()}, dags=dags, tasks=tasks)


def failing_over() -> Stage:
    """A failover asks whether the groups shall be written."""
    run = DagRunFacts("manual__over", "running", made_up.iso(90), None, "/dags/ferry.A.B.failover/runs/manual__over")
    done = ("check_clusters", "plan_copy", "copy_once_more", "plan_groups")
    tasks = {**dict.fromkeys(done, "success"), "copy_once_more": "failed", "confirm": "awaiting_input", "write_groups": ""}
    return replace(with_recovery(), recovering={"ferry.A.B.failover": run}, tasks=tasks)


SCENARIOS: dict[str, Callable[[], Stage]] = {
    made.__name__: made
    for made in (
        healthy,
        lagging,
        following,
        copying,
        ending,
        loss,
        paused,
        new,
        queued,
        refused,
        missing,
        failing,
        unreachable,
        dropped,
        held,
        nothing,
        idle,
        config,
        many,
        broken,
        quiet,
        forty,
        hostile,
        slow,
        filling,
        running,
        plain,
        formulas,
        with_recovery,
        failing_over,
    )
}
