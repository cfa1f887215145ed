"""What DAG files need of the config: flows, DAG ids, schedules, runbooks. Read while parsing, so nothing here touches a network."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import Asset, CronDataIntervalTimetable

from ferry.airflow.connections import connection_fields, placeholder
from ferry.alerting.loading import check_callbacks
from ferry.config import Flow, load_config
from ferry.config.settings import CALLBACK, AlertSettings
from ferry.errors import ConfigError
from ferry.syncs.names import AFTER_THE_COPY, not_enabled

CONFIG_VARIABLE = "FERRY_CONFIG"
START_DATE = datetime(2024, 1, 1, tzinfo=UTC)


def config_path() -> Path:
    """The config file that FERRY_CONFIG names."""
    path = os.environ.get(CONFIG_VARIABLE)
    if not path:
        raise ConfigError(f"{CONFIG_VARIABLE} is not set: it names the mm2.properties whose flows become DAGs")
    return Path(path)


def flows_for_parsing() -> tuple[Flow, ...]:
    """The enabled flows; none when FERRY_CONFIG is not set. A config that cannot be read is an import error that says so."""
    if not os.environ.get(CONFIG_VARIABLE):
        return ()
    flows = load_config(config_path(), connections=placeholder).flows
    refuse_same_ids(flows)
    for flow in flows:
        try:
            check_callbacks(flow.alerts)
        except ConfigError as problem:
            raise ConfigError(f"{config_path()}: {CALLBACK} of {flow.name}: {problem}") from problem
    return flows


def refuse_same_ids(flows: Iterable[Flow]) -> None:
    """ConfigError when dots in aliases give two flows a DAG of the same id: Airflow would keep one of them, and say nothing."""
    owners: dict[str, str] = {}
    for flow in flows:
        for name in (dag_id(flow), verify_dag_id(flow)):
            if owners.setdefault(name, flow.name) != flow.name:
                raise ConfigError(f"{config_path()}: flows {owners[name]} and {flow.name} would both have the DAG {name}: rename an alias")


def flows_told_elsewhere() -> tuple[Flow, ...]:
    """The same for a second DAG file: none where the config cannot be read, which the first file's import error says."""
    try:
        return flows_for_parsing()
    except ConfigError:
        return ()


def flow_for_running(name: str) -> Flow:
    """The flow with its connections resolved."""
    return load_config(config_path(), connections=connection_fields).flow(name)


def alerts_of(name: str) -> AlertSettings:
    """Whom the flow tells. Looks up no connection: that one cannot be had is what may have to be told."""
    return load_config(config_path(), connections=placeholder).flow(name).alerts


def dag_id(flow: Flow) -> str:
    """`ferry.<source>.<target>`: an alias holds nothing that a DAG id may not."""
    return f"ferry.{flow.source.alias}.{flow.target.alias}"


def verify_dag_id(flow: Flow) -> str:
    """`ferry.<source>.<target>.verify`."""
    return f"{dag_id(flow)}.verify"


def timetable(flow: Flow) -> CronDataIntervalTimetable | None:
    """The flow's schedule with real data intervals: a plain cron string would give intervals of zero width."""
    return CronDataIntervalTimetable(flow.schedule, timezone="UTC") if flow.schedule else None


def flow_asset(flow: Flow) -> Asset:
    """Updated by every run that copied without failure; its events carry counts."""
    return Asset(name=dag_id(flow), uri=f"ferry://{flow.source.alias}/{flow.target.alias}")


def sync_tasks(flow: Flow) -> dict[str, str]:
    """The syncs that the flow has enabled: task id by what is synced. Each is a task of its own, so that one that fails stops no other."""
    return {f"sync_{name.value.replace('-', '_')}": name.value for name in AFTER_THE_COPY if not not_enabled(flow, name)}


def runbook(flow: Flow) -> str:
    """The DAG's documentation: what each task does, and what to do when it fails."""
    command = f"ferry {{}} $FERRY_CONFIG --flow '{flow.name}'"
    return f"""
### {flow.name}: exactly-once copy

Copies the topics of `{flow.source.alias}` to `{flow.target.alias}`. Records, positions and receipts are committed in one transaction on the
target, so a run can be killed at any moment and run again: nothing is lost, doubled or reordered.

| task | does | when it fails |
|---|---|---|
| `plan_run` | compares both clusters; writes nothing | the message names the cluster, key or topic to correct |
| `prepare_topics` | creates and grows remote topics, records where new partitions start | rights or limits on the target; run it again |
| `copy_records` | one Spark job that copies up to the bound; skipped when nothing is new | retried; *superseded*: a newer run took over |
| `sync_…` | configs, ACLs, heartbeat, offset syncs, checkpoints, group offsets: each alone, skipped when not due | the message names \
what and why; the others go on |
| `announce_topics` | an event for the asset of each remote topic that was refreshed; skipped when nothing was copied | retried |
| `check_limits` | lag and headroom as metrics; fails when they are beyond the config's limits | the message names topic, value and limit |
| `report_outcome` | what was copied, lost, left out, synced | see below; not retried |

| report says | do |
|---|---|
| `SourceDataLost` | records expired before they were copied: `{command.format("ledger")}`, then `{command.format("ack-loss")}` |
| `PositionDisagrees` | group, state or ledger were changed from outside: decide, then `{command.format("seed")} --from-file seeds.csv` |
| `SourceRecreated`, `SourceTruncated` | set `{flow.name}.ferry.on.recreate=restart`, or exclude the topic |
| `TargetRecreated` | set `{flow.name}.ferry.on.target.recreate=restart` to copy the topic anew |
| `BatchRefused` | the message names the remote topic's limit to raise |
| `RunUnfinished` | run it again |
| `LimitsBroken` | `{command.format("status")}`; run more often, raise `ferry.max.rate.mb`, or the source's retention |

**Missed intervals** need nothing: the next run goes on from the position. **History** from before the flow's start: Airflow's backfill over
those intervals (or `{command.format("backfill")} --from … --until …`) copies what the ledger does not cover, once.
"""
