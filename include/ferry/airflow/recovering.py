"""The tasks of the failover, failback and cut-over DAGs: their bodies, and the Spark jobs of the ordinary DAGs with run ids of their own.

Tasks pass on little: the result of the check of the clusters, the table that a person confirms (at most LISTED rows), and the moves back
that this person allows. Each task reads everything else anew, so it can be repeated at any time.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from airflow.sdk import Context, get_current_context

from ferry.airflow.connections import connection_fields
from ferry.airflow.flows import FlowReference
from ferry.airflow.recovery_params import CUTOVER, FAILOVER, options_of, recovery_given
from ferry.airflow.spark_operators import FerrySparkOperator
from ferry.airflow.steps import skip_without_work
from ferry.airflow.tasks import EarlierTaskFailed, say, typed_retries
from ferry.airflow.versions import AirflowSkipException
from ferry.config import Flow, load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import RecoveryStopped, count_of
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.ledger.run_report import RunReport
from ferry.monitoring.runs import COPY_TASK
from ferry.pipeline.report_reading import UNFINISHED
from ferry.pipeline.run import Run, copied
from ferry.pipeline.tables import Table
from ferry.recovery import failover as failing_over
from ferry.recovery import switch_over as planned_move
from ferry.recovery.not_copied import drain, refuse_active_producers
from ferry.recovery.options import Tail
from ferry.recovery.recovery_report import Confirmation, RecoveryPlan, for_page, group_table, missing_table, notes, outcome_lines
from ferry.recovery.reverse import find_reverse
from ferry.recovery.switch_over import SwitchOver
from ferry.spark.submit import COPY_JOB, VERIFY_JOB
from ferry.verify.request import VerifyRequest
from ferry.verify.results_topic import read_report as read_verify_report

# Rows in the question and entries in an XCom; `ferry … --json` shows all.
LISTED = 200


class Asked:
    """What a person asked for in a DAG run, and the open flow and the one in the other direction."""

    def __init__(self, opened: OpenFlow, reverse: Flow | None, command: str, context: Mapping[str, Any]) -> None:
        self.command, self.given, self.options = command, recovery_given(command, context), options_of(command, context)
        self.opened, self.flow = opened, opened.flow
        self.reverse = None if reverse is None else opened.back(reverse)

    @property
    def switch(self) -> SwitchOver:
        """The direction in which groups move, of a failback or a cut-over."""
        return (planned_move.cutover if self.command == CUTOVER else planned_move.failback)(self.opened, self.reverse)

    def copied(self, what: str) -> OpenFlow:
        """The flow that one of the copies runs. Only a failback copies `back`."""
        return self.switch.active if what == "back" else self.opened


@contextmanager
def asked_for(flow: FlowReference, command: str, context: Mapping[str, Any]) -> Iterator[Asked]:
    """With the connections of the flow resolved."""
    loaded = load_config(flow.config, connections=connection_fields)
    settings = loaded.flow(flow.name)
    with open_flow(settings) as opened:
        yield Asked(opened, find_reverse(loaded, settings), command, context)


@dataclass(frozen=True)
class Movement:
    """A failover, failback or cut-over of a flow. The methods without an underscore are the bodies of its tasks, and have their names."""

    flow: FlowReference
    command: str

    def __str__(self) -> str:
        return f"{self.flow.name}: {self.command}"

    @contextmanager
    def _asked(self) -> Iterator[Asked]:
        with typed_retries(self.flow), asked_for(self.flow, self.command, get_current_context()) as asked:
            yield asked

    def check_clusters(self) -> dict[str, Any]:
        """What the tasks behind it need; nothing if the groups have moved before, so that none of them runs."""
        with self._asked() as asked:
            if self.command == FAILOVER:
                without = asked.given["without_source"]
                checked = failing_over.check_failover(asked.opened, asked.reverse, asked.options, without_source=without)
            else:
                if (over := planned_move.report_of_ended(asked.switch, asked.options)) is not None:
                    say("; ".join(outcome_lines(over)))
                    return {}
                checked = planned_move.check_switch_over(asked.switch, asked.options, rebuilt=asked.given.get("rebuilt", False))
        for text in filter(None, (*checked.notices, *checked.problems, checked.away)):
            say(text)
        return {"away": checked.away, "source_cluster": checked.source_cluster, "notices": checked.notices, "problems": checked.problems}

    def plan_copy(self, what: str, checked: Mapping[str, Any]) -> dict[str, Any]:
        """Plan one of the copies and create its topics. Returns what the copy task needs."""
        with self._asked() as asked:
            options, copied = asked.options, asked.copied(what)
            wanted = asked.given["last_copy"] if self.command == FAILOVER else what != "tail" or asked.given["tail"] == Tail.COPY
            if checked["away"] or not wanted or not options.writes:
                return {"needs_copy": False, "dry_run": not options.writes}
            if what == "back":
                for text in planned_move.settle_start(asked.switch, options):
                    say(text)
            run = Run(copied, RunRequest(copied.flow.name, options.part(what)))
            run.bring_schemas()
            run.move_records(lambda: None, lambda _: None)
        return {"needs_copy": run.plan.needs_copy, "dry_run": False}

    def begin_to_stop(self) -> None:
        """Skip the task in a dry run."""
        with typed_retries(self.flow):
            writes = options_of(self.command, get_current_context()).writes
        if not writes:
            raise AirflowSkipException(f"dry run of {self.flow.name}: nothing is touched")

    def drain(self) -> dict[str, Any]:
        """Check that producers have stopped, then copy the rest in this process until nothing is left."""
        with self._asked() as asked:
            active = asked.switch.active
            refuse_active_producers(active, float(asked.given["quiet_seconds"]))
            return {"records": drain(active, asked.options, _copy, say)}

    def plan_groups(self, checked: Mapping[str, Any] | None) -> dict[str, Any]:
        """Plan where every group continues, as a table in the log and in the question. In a dry run the tasks after it are skipped."""
        if checked is None:
            raise EarlierTaskFailed("check_clusters failed: its log names the reason")
        context = get_current_context()
        with self._asked() as asked:
            plan = _known(asked, checked)
            if self.command == FAILOVER:
                plan = failing_over.plan_failover(asked.opened, asked.reverse, plan)
            else:
                plan = planned_move.plan_switch_over(asked.switch, plan)
        body = markdown(plan)
        say(body)
        found = {"body": body, "away": plan.away, "document": document_of(plan), "ahead": plan.ahead if plan.options.backwards else ()}
        if not plan.options.writes:
            context["ti"].xcom_push(key="return_value", value=found)
            raise AirflowSkipException("dry run: the plan is in the log above")
        return found

    def write_groups(self, checked: Mapping[str, Any], planned: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
        """Write the groups as a person confirmed. A repeated task does not touch groups that are done."""
        back = tuple((group, topic, partition, present) for group, topic, partition, present in planned["ahead"])
        confirmed = Confirmation(who(answer), back)
        with self._asked() as asked:
            plan = _known(asked, {**checked, "away": planned["away"]})
            if self.command == FAILOVER:
                outcome = failing_over.carry_out_failover(asked.opened, asked.reverse, plan, confirmed)
            else:
                proven = _proven(asked) if asked.given["verify"] else "not asked for"
                outcome = planned_move.carry_out_switch_over(asked.switch, plan, confirmed, proven)
        for text in (*outcome_lines(outcome), *outcome.undone, *outcome.problems):
            say(text)
        found = shortened(outcome.document())
        as_planned = ("missing", "missing_offsets", "known_until", "losses", "positions_from", "checkpoints_as_of")
        return {**found, **{name: planned["document"][name] for name in as_planned}}

    def report_outcome(self, written: Mapping[str, Any] | None) -> dict[str, Any]:
        """The whole document. RecoveryStopped if a group was not written."""
        if written is None:
            raise EarlierTaskFailed("write_groups failed: its log names the reason")
        with typed_retries(self.flow):
            left = [*written["undone"], *written["problems"]]
            say(f"{self.flow.name} is {written['stage']}; confirmed by {written['confirmed_by']}")
            if written["exit_code"]:
                raise RecoveryStopped(f"{self.flow.name}: not everything is done: {'; '.join(left[:LISTED])}")
        return dict(written)


def markdown(plan: RecoveryPlan) -> str:
    """The body of the question: what is not on the other side, then every group."""
    lines = [f"- {_cell(text)}" for text in notes(plan)]
    lines += ["", "Not on the other side:", "", *_table(missing_table(plan))]
    return "\n".join([*lines, "", "Groups:", "", *_table(group_table(plan)), ""])


def who(answer: Mapping[str, Any]) -> str:
    """Who approved, as Airflow names the person."""
    user = answer.get("responded_by_user")
    if isinstance(user, Mapping):
        return f"{user.get('name') or user.get('id')}, in Airflow"
    return f"{user}, in Airflow" if user else "somebody, in Airflow"


def document_of(plan: RecoveryPlan) -> dict[str, Any]:
    """The document for an XCom, which the page draws. It has tables instead of `groups`, because each group may have many partitions."""
    document = {name: value for name, value in plan.document().items() if name != "groups"}
    return {**shortened(document), **for_page(plan, LISTED)}


def shortened(document: Mapping[str, Any]) -> dict[str, Any]:
    """For an XCom: lists are cut at LISTED entries."""
    return {name: list(value)[:LISTED] if isinstance(value, list | tuple) else value for name, value in document.items()}


def _known(asked: Asked, checked: Mapping[str, Any]) -> RecoveryPlan:
    return RecoveryPlan(
        asked.options,
        asked.flow.name,
        away=checked["away"],
        source_cluster=checked["source_cluster"],
        copy=_copy_told(asked, checked),
        notices=tuple(checked["notices"]),
        problems=tuple(checked["problems"]),
    )


def _copy_told(asked: Asked, checked: Mapping[str, Any]) -> str:
    flow, options = asked.flow, asked.options
    if not options.writes:
        return f"none: {options.mode.value}"
    if asked.command != FAILOVER:
        return ""
    if checked["away"]:
        return f"none: {flow.source.alias} does not answer"
    report = Run(asked.opened, RunRequest(flow.name, options.part("copy"))).report(idle=False)
    if UNFINISHED in report.failed:
        return "none: not asked for, not needed, or failed; the log of its task says which"
    problems = "".join(f"; {problem.named}" for problem in report.problems())
    return f"{count_of(report.records, 'record')}{problems}"


def _proven(asked: Asked) -> str:
    report = read_verify_report(asked.switch.active, asked.options.part("verify"))
    if report is None:
        raise RecoveryStopped("compare_sides left no report: read its log, then clear it")
    return planned_move.verified(report)


def _copy(opened: OpenFlow, request: RunRequest) -> RunReport:
    return copied(opened, request, lambda run: run.copy(InlineLaneRunner(), say))


def _table(table: Table) -> list[str]:
    if not table.rows:
        return ["(nothing)"]
    drawn = [f"| {' | '.join(table.columns)} |", f"|{'---|' * len(table.columns)}"]
    drawn += [f"| {' | '.join(_cell(str(cell)) for cell in row)} |" for row in table.rows[:LISTED]]
    return [*drawn, f"… and {count_of(len(table.rows) - LISTED, 'more row')}"] if len(table.rows) > LISTED else drawn


def _cell(text: str) -> str:
    """Escaped for a table: names may hold any character."""
    return "".join(f"\\{character}" if character in "\\|`*_[]<>#!" else character if character.isprintable() else " " for character in text)


class RecoveryCopyOperator(FerrySparkOperator):
    """One of the copies (`what`) of a recovery; skipped when there is nothing to copy."""

    job = COPY_JOB
    template_fields: Sequence[str] = ("planned",)

    def __init__(self, *, command: str, what: str, planned: Any, **options: Any) -> None:
        super().__init__(**options)
        self.command, self.what, self.planned = command, what, planned

    def request(self, context: Context) -> str:
        skip_without_work(COPY_TASK, self.planned)
        with asked_for(self.flow, self.command, context) as asked:
            return RunRequest(asked.copied(self.what).flow.name, asked.options.part(self.what)).to_json()


class RecoveryVerifyOperator(FerrySparkOperator):
    """Compares both sides after the drain."""

    job = VERIFY_JOB

    def __init__(self, *, command: str, **options: Any) -> None:
        super().__init__(**options)
        self.command = command

    def request(self, context: Context) -> str:
        """The request of the verify; another try continues where the last one ended."""
        with asked_for(self.flow, self.command, context) as asked:
            if not asked.given["verify"] or not asked.options.writes:
                raise AirflowSkipException("not asked for")
            return VerifyRequest(asked.switch.active.flow.name, asked.options.part("verify")).to_json()
