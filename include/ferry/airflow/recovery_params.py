"""What the failover, failback and cut-over DAGs need to be parsed: ids, forms, runbooks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

from ferry.airflow.flows import dag_id
from ferry.airflow.params import known_params
from ferry.config import Flow
from ferry.errors import ArgumentError
from ferry.recovery.report import Mode, RecoveryOptions, check_quiet

FAILOVER, FAILBACK, CUTOVER = "failover", "failback", "cutover"
# Longer than a bounce of a client takes, as of `ferry failback`.
QUIET_SECONDS = 5


def recovery_dag_id(flow: Flow, command: str) -> str:
    """`ferry.<source>.<target>.<command>`."""
    return f"{dag_id(flow)}.{command}"


def recovery_params(command: str) -> dict[str, Param]:
    """The form of a trigger."""
    groups = "Only groups whose whole name this regular expression matches; empty: all of the flow."
    both = {
        "groups": Param(None, type=["null", "string"], description=groups),
        "backwards": Param(
            False, type="boolean", description="Groups that are further on the other side already go back, as the plan shows."
        ),
        "dry_run": Param(False, type="boolean", description="Only look: the plan stands in the log of plan_groups. Touches nothing."),
    }
    if command == FAILOVER:
        return {
            "last_copy": Param(True, type="boolean", description="Copy once more first, if the source answers."),
            "without_source": Param(False, type="boolean", description="Do not ask the source: it is half alive, checkpoints count."),
            **both,
        }
    planned = {
        "quiet_seconds": Param(
            QUIET_SECONDS, type="number", minimum=0, description="For so long nothing may arrive where producers have stopped."
        ),
        "verify": Param(True, type="boolean", description="Prove that both sides hold the same records before groups are moved."),
    }
    if command == CUTOVER:
        return {**planned, **both}
    tail = "Records at the source that were never copied: copy them to the target first, or leave them."
    rebuilt = "The source is a new one: its topics are not those that were copied from."
    return {
        "tail": Param("copy", type="string", enum=["copy", "leave"], description=tail),
        "rebuilt": Param(False, type="boolean", description=rebuilt),
        **planned,
        **both,
    }


def given_params(command: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """What the run was given, checked once more; ArgumentError for what cannot be meant."""
    known = recovery_params(command)
    given = {name: param.value for name, param in known.items()} | known_params(context, known)
    for name, value in given.items():
        default = known[name].value
        if isinstance(default, bool) and not isinstance(value, bool):
            raise ArgumentError(f"parameter {name} of the run must be true or false, not {value!r}")
    groups, quiet = given["groups"], given.get("quiet_seconds", 0)
    if groups is not None and not isinstance(groups, str):
        raise ArgumentError(f"parameter groups of the run must be a regular expression, not {groups!r}")
    if groups is not None:
        try:
            re.compile(groups)
        except re.error as problem:
            raise ArgumentError(f"parameter groups of the run is no regular expression: {problem}") from problem
    if isinstance(quiet, bool) or not isinstance(quiet, int | float):
        raise ArgumentError(f"parameter quiet_seconds of the run must be a number of seconds, not {quiet!r}")
    check_quiet(quiet)
    if given.get("tail", "copy") not in {"copy", "leave"}:
        raise ArgumentError(f"parameter tail of the run must be copy or leave, not {given['tail']!r}")
    return given


def options_of(command: str, context: Mapping[str, Any]) -> RecoveryOptions:
    """What a person asked for. The run id is Airflow's, the same over all tries."""
    given = given_params(command, context)
    mode = Mode.DRY_RUN if given["dry_run"] else Mode.REAL
    return RecoveryOptions(command, context["dag_run"].run_id, mode, given["groups"] or None, given["backwards"])


_DOES = {
    FAILOVER: "Moves all groups of `{a}` to `{b}`, each to the record that it would have read next; also when `{a}` is gone.",
    FAILBACK: "Comes back from `{b}` to `{a}`: only what was produced since is copied back, and groups go on where they stand.",
    CUTOVER: "A planned move from `{a}` to `{b}`: producers stop, everything is copied and compared, then groups go on there.",
}


def recovery_runbook(flow: Flow, command: str) -> str:
    """The DAG's documentation."""
    told = _DOES[command].format(a=flow.source.alias, b=flow.target.alias)
    planned = "" if command == FAILOVER else _PLANNED
    return f"""
### {flow.name}: {command}

{told}

| task | does | when it fails |
|---|---|---|
| `check_clusters` | whether it can begin; writes nothing | the message names what to settle |
| `copy_…` | copies as a run of the flow does | {"the failover goes on without it" if command == FAILOVER else "retried"} |
{planned}| `plan_groups` | where every group goes on, what is not on the other side; writes nothing | retried |
| `confirm` | waits for a person: the table is in **Required Actions** | *Reject* writes no group |
| `write_groups` | writes the groups, reads them back, keeps the stage | retried; groups that are done are not touched again |
| `report_outcome` | names every group that was not written, and why | trigger the DAG again when their members are gone |

Nothing but copies is written before `confirm`. Killed anywhere, clear the failed task, or trigger the DAG again: it goes on where it stood.
The same by hand: `ferry {command} $FERRY_CONFIG --flow '{flow.name}'`.
"""


_PLANNED = """\
| `confirm_stopped` | waits for a person: producers and consumers have been stopped | *Reject* ends the run |
| `drain` | measures that nothing arrives, copies the rest until nothing is left | producers still run: stop them, then clear it |
| `compare_sides` | proves that both sides hold the same records | the log names what differs |
"""
