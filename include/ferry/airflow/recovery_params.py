"""What Airflow needs to parse the failover, failback and cut-over DAGs: forms, runbooks."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

from ferry.airflow.params import given_params
from ferry.config import Flow
from ferry.errors import ArgumentError
from ferry.recovery.options import QUIET_SECONDS, Mode, RecoveryOptions, Tail, check_quiet

FAILOVER, FAILBACK, CUTOVER = COMMANDS = "failover", "failback", "cutover"


def recovery_params(command: str) -> dict[str, Param]:
    groups = "Only groups whose whole name this regular expression matches; empty: all of the flow."
    backwards = "Also move back groups that are further ahead on the other side, as the plan shows."
    both = {
        "groups": Param(None, type=["null", "string"], description=groups),
        "backwards": Param(False, type="boolean", description=backwards),
        "dry_run": Param(False, type="boolean", description="Only show the plan, in the log of plan_groups. Changes nothing."),
    }
    if command == FAILOVER:
        return {
            "last_copy": Param(True, type="boolean", description="Copy once more first, if the source answers."),
            "without_source": Param(False, type="boolean", description="Do not ask the source, because it is unreliable; use checkpoints."),
            **both,
        }
    quiet = "Producers count as stopped if no record arrives for so long."
    planned = {
        "quiet_seconds": Param(QUIET_SECONDS, type="number", minimum=0, description=quiet),
        "verify": Param(True, type="boolean", description="Compare both sides record by record before groups are moved."),
    }
    if command == CUTOVER:
        return {**planned, **both}
    tail = "Records of the source that were never copied: copy them to the target first, or leave them."
    rebuilt = "The source was rebuilt: its topics are not the ones that were copied."
    return {
        "tail": Param(Tail.COPY.value, type="string", enum=[choice.value for choice in Tail], description=tail),
        "rebuilt": Param(False, type="boolean", description=rebuilt),
        **planned,
        **both,
    }


def recovery_given(command: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the run, checked once more. ArgumentError for a wrong value."""
    given = given_params(context, recovery_params(command))
    groups, quiet = given["groups"], given.get("quiet_seconds", 0)
    if groups is not None and not isinstance(groups, str):
        raise ArgumentError(f"parameter groups of the run must be a regular expression, not {groups!r}")
    if isinstance(quiet, bool) or not isinstance(quiet, int | float):
        raise ArgumentError(f"parameter quiet_seconds of the run must be a number of seconds, not {quiet!r}")
    check_quiet(quiet)
    return given


def options_of(command: str, context: Mapping[str, Any]) -> RecoveryOptions:
    """The options of the run. The run id is Airflow's: all tries have the same."""
    given = recovery_given(command, context)
    mode = Mode.DRY_RUN if given["dry_run"] else Mode.REAL
    return RecoveryOptions(command, context["dag_run"].run_id, mode, given["groups"] or None, given["backwards"])


_DOES = {
    FAILOVER: "Moves all groups of `{a}` to `{b}`, each to the record that it would have read next. This also works when `{a}` is gone.",
    FAILBACK: "Moves back from `{b}` to `{a}`: only newer records are copied back, and each group continues where it was.",
    CUTOVER: "A planned move from `{a}` to `{b}`: producers stop, everything is copied and compared, then groups continue there.",
}


def recovery_runbook(flow: Flow, command: str) -> str:
    told = _DOES[command].format(a=flow.source.alias, b=flow.target.alias)
    planned = "" if command == FAILOVER else _PLANNED
    return f"""
### {flow.name}: {command}

{told}

| task | does | when it fails |
|---|---|---|
| `check_clusters` | checks whether it can begin; writes nothing | the message says what to correct |
| `copy_…` | copies as a run of the flow does | {"the failover continues without it" if command == FAILOVER else "retried"} |
{planned}| `plan_groups` | plans where every group continues, and finds what is not on the other side; writes nothing | retried |
| `confirm` | waits for a person, who finds the table under **Required Actions** | *Reject* writes no group |
| `write_groups` | writes the groups, reads them again, writes down the stage | retried; groups that are done are not written again |
| `report_outcome` | names every group that was not written, and why | trigger the DAG again when these groups have no members |

Before `confirm` the DAG writes only copies. If a task is killed, clear it or trigger the DAG again: it continues where it was.
The same on the command line: `{flow.command(command)}`.
"""


_PLANNED = """\
| `confirm_stopped` | waits for a person, who has stopped producers and consumers | *Reject* ends the run |
| `drain` | checks that no new record arrives, copies the rest until nothing is left | producers still run: stop them, then clear the task |
| `compare_sides` | compares both sides record by record | the log names what differs |
"""
