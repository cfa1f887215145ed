"""What DAG files need from the config: flows, DAG ids, runbooks. Airflow parses DAG files, so nothing here uses the network."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import Asset

from ferry.airflow.connections import connection_fields, placeholder
from ferry.alerting.delivering import check_callbacks
from ferry.config import Flow, load_config
from ferry.config.settings import CALLBACK
from ferry.errors import ConfigError
from ferry.monitoring.runs import SYNC_TASKS
from ferry.syncs.names import AFTER_THE_COPY, BEFORE_THE_COPY, SyncName, not_enabled

# A tag of all of Ferry's DAGs, by which the page finds them.
TAG = "ferry"
START_DATE = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class FlowReference:
    """A flow by its name and the file that defines it. Every task reads the file itself."""

    config: Path
    name: str


def flows_for_parsing(configs: Iterable[Path]) -> tuple[tuple[FlowReference, Flow], ...]:
    """The enabled flows of the files. ConfigError, which Airflow shows as an import error."""
    loaded = {config: load_config(config, connections=placeholder).flows for config in configs}
    found = tuple((FlowReference(config, flow.name), flow) for config, flows in loaded.items() for flow in flows)
    refuse_same_ids(found)
    for reference, flow in found:
        try:
            check_callbacks(flow.alerts)
        except ConfigError as problem:
            raise ConfigError(f"{reference.config}: {CALLBACK} of {flow.name}: {problem}") from problem
    return found


def refuse_same_ids(found: Iterable[tuple[FlowReference, Flow]]) -> None:
    """ConfigError when two flows would have a DAG of the same id, also because of dots in aliases: Airflow would silently keep one."""
    owners: dict[str, FlowReference] = {}
    for reference, flow in found:
        for name in (dag_id(flow), verify_dag_id(flow)):
            other = owners.setdefault(name, reference)
            if other != reference:
                where = f" of {other.config}" if other.config != reference.config else ""
                both = f"flows {other.name}{where} and {flow.name}"
                raise ConfigError(f"{reference.config}: {both} would both have the DAG {name}: rename an alias")


def flow_for_running(flow: FlowReference) -> Flow:
    """The flow with its connections resolved."""
    return load_config(flow.config, connections=connection_fields).flow(flow.name)


def settings_of(flow: FlowReference) -> Flow:
    """The flow without its connections: a missing connection may be what an alert is about."""
    return load_config(flow.config, connections=placeholder).flow(flow.name)


def dag_id(flow: Flow) -> str:
    """`ferry.<source>.<target>`. A DAG id may hold every character that an alias may hold."""
    return f"ferry.{flow.source.alias}.{flow.target.alias}"


def verify_dag_id(flow: Flow) -> str:
    return f"{dag_id(flow)}.verify"


def flow_asset(flow: Flow) -> Asset:
    """The asset that every run without a failure updates; its events hold counts."""
    return Asset(name=dag_id(flow), uri=f"ferry://{flow.source.alias}/{flow.target.alias}")


def sync_tasks(flow: Flow, names: Iterable[SyncName] = (*BEFORE_THE_COPY, *AFTER_THE_COPY)) -> dict[str, str]:
    """Those of these syncs that the flow has enabled, by task id. Each is a task of its own, so a failed sync stops no other."""
    return {f"{SYNC_TASKS}{name.value.replace('-', '_')}": name.value for name in names if not not_enabled(flow, name)}


def runbook(flow: Flow) -> str:
    """The documentation of the DAG: what each task does, and what to do when it fails."""
    return f"""
### {flow.name}: exactly-once copy

Copies the topics of `{flow.source.alias}` to `{flow.target.alias}`. Records, positions and receipts are committed in one transaction on the
target. You may kill a run at any moment and start it again: nothing is lost, duplicated or reordered.

| task | does | when it fails |
|---|---|---|
| `plan_run` | compares both clusters; writes nothing | the message names the cluster, key or topic to correct |
| `prepare_topics` | creates and grows remote topics, records where new partitions start | check rights and limits on the target |
| `sync_schemas` | registers on the target's schema registry what it lacks, if both clusters have one | no record is copied: the message \
names the subject, and what to do |
| `copy_records` | one Spark job that copies up to the bound, and goes on if the run follows; skipped when nothing is new | retried; \
*superseded*: a newer run took over |
| `sync_…` | configs, ACLs, heartbeat, offset syncs, checkpoints, group offsets, the source group; each is skipped when not due | \
the message says what failed and why; the other syncs go on |
| `announce_topics` | an event for the asset of each remote topic with new records; skipped when nothing was copied | retried |
| `check_limits` | sends lag and headroom as metrics; fails if a limit is broken | the message names topic, value and limit |
| `report_outcome` | reports what was copied, lost, left out and synced | see below; not retried |

| the report says | do this |
|---|---|
| `SourceDataLost` | records expired before they were copied: `{flow.command("ledger")}`, then `{flow.command("ack-loss")}` |
| `PositionDisagrees` | somebody changed group, state or ledger: decide, then `{flow.command("seed")} --from-file seeds.csv` |
| `SourceRecreated`, `SourceTruncated` | set `{flow.name}.ferry.on.recreate=restart`, or exclude the topic |
| `TargetRecreated` | set `{flow.name}.ferry.on.target.recreate=restart` to copy the topic anew |
| `BatchRefused` | the message names the remote topic's limit to raise |
| `RunUnfinished` | run it again |
| `LimitsBroken` | `{flow.command("status")}`; run more often, raise `ferry.max.rate.mb`, or the source's retention |

**Missed intervals** need no action: the next run continues at the position. **History** from before the flow's start: Airflow's backfill
over those intervals (or `{flow.command("backfill")} --from … --until …`) copies what the ledger does not cover, once.
"""
