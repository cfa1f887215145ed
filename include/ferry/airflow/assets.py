"""Assets: one for the flow, and one for each remote topic. A run updates the asset of each topic that it appended records to.

The topics are known only at the end of a run. So the task has one alias as its outlet, and adds an event for each topic's asset to it. The
name of an asset is its uri: a downstream DAG only writes `Asset("ferry://B/topics/A.orders")`.
"""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Asset, AssetAlias, get_current_context

from ferry.airflow.flows import FlowReference, dag_id, flow_for_running
from ferry.airflow.open_alerts import tell
from ferry.airflow.steps import request_of, skip_without_work
from ferry.airflow.tasks import say, typed_retries
from ferry.airflow.versions import AirflowSkipException, extra_of_event
from ferry.alerting.alert import Alert, AlertKind, Severity
from ferry.config import Flow
from ferry.config.settings import ASSETS_MAX
from ferry.errors import count_of
from ferry.monitoring.runs import ANNOUNCE_TASK
from ferry.pipeline.refreshed import RefreshedTopic, read_refreshed


def topics_alias(flow: Flow) -> AssetAlias:
    """The alias of all remote topics of a flow: it starts a DAG when any of them has new records."""
    return AssetAlias(name=f"{dag_id(flow)}.topics", group="ferry")


def announce(flow: FlowReference, planned: Mapping[str, Any] | None) -> dict[str, Any]:
    """Add an event for each remote topic to which the run appended records, even if other topics failed. Returns counts for the XCom."""
    planned = skip_without_work(ANNOUNCE_TASK, planned)
    context = get_current_context()
    with typed_retries(flow):
        settings = flow_for_running(flow)
        if not settings.alerts.assets_max:
            raise AirflowSkipException(f"{ASSETS_MAX} = 0: topics are not announced")
        run_id = request_of(flow, context).run_id
        refreshed = read_refreshed(settings, run_id)
    if not planned["needs_copy"]:  # an earlier try copied records, or this run copied only heartbeats
        is_heartbeats = settings.is_heartbeats
        refreshed = tuple(entry for entry in refreshed if not is_heartbeats(entry.topic))
    if not refreshed:
        raise AirflowSkipException("no remote topic was refreshed")
    told, left_out = refreshed[: settings.alerts.assets_max], refreshed[settings.alerts.assets_max :]
    events = context["outlet_events"][topics_alias(settings)]
    for topic in told:
        asset = Asset(f"ferry://{settings.target.alias}/topics/{topic.remote_topic}", group="ferry")
        events.add(asset, extra=extra_of_event(topic.facts(flow.name, run_id)))
        say(f"{topic.remote_topic}: {count_of(topic.records, 'record')} in {count_of(len(topic.partitions), 'partition')}")
    task = context["ti"]
    tell(settings.alerts, task, run_id, [_left_out(settings, run_id, left_out, str(task.log_url))] if left_out else (), is_all=True)
    return {"announced": len(told), "left_out": len(left_out)}


def _left_out(flow: Flow, run_id: str, left_out: tuple[RefreshedTopic, ...], url: str) -> Alert:
    for topic in left_out:
        say(f"{topic.remote_topic}: refreshed, but not announced: {ASSETS_MAX} = {flow.alerts.assets_max}")
    message = f"{flow.name}: not announced: {count_of(len(left_out), 'refreshed topic')}, {left_out[0].remote_topic} the first of them"
    step, most = f"raise {ASSETS_MAX}, or schedule by the flow's own asset", flow.alerts.assets_max
    return Alert(flow.name, AlertKind.ASSETS, Severity.WARNING, ASSETS_MAX, message, step, len(left_out) + most, most, run_id, url)
