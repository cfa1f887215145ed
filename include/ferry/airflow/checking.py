"""The task that looks back at the end of a run: lag and headroom as metrics and for the history, and the limits of the config.

It measures for itself, whatever became of the copy: a copy that failed is when lag matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowSkipException

from ferry.airflow.flows import flow_for_running
from ferry.airflow.metrics import emit
from ferry.airflow.retries import EarlierTaskFailed, typed_retries
from ferry.airflow.steps import request_of
from ferry.monitoring.limits import limits_broken
from ferry.monitoring.measurements import status_measurements
from ferry.monitoring.status import status_after_run
from ferry.pipeline.history import keep_lag
from ferry.pipeline.run import Run


def check_limits(flow: str, planned: Mapping[str, Any] | None) -> dict[str, Any]:
    """Lag and headroom after the run; fails with LimitsBroken for what is beyond the config's limits. Totals as XCom."""
    if planned is None:
        raise EarlierTaskFailed("an earlier task failed: its log names the reason")
    if planned["dry_run"]:
        raise AirflowSkipException("dry run: nothing was copied")
    with typed_retries():
        settings = flow_for_running(flow)
        request = request_of(flow, get_current_context())
        report = Run(settings, request).report(idle=False) if planned["needs_copy"] else None
        status = status_after_run(settings, report)
        if trouble := keep_lag(settings, request.run_id, status.lag.of_run):
            print(trouble)  # noqa: T201
        emit(status_measurements(status, settings.source.alias, settings.target.alias))
        totals: dict[str, Any] = status.document()["totals"]
        headroom = status.lag.headroom_seconds
        print(f"lag after the run: {totals}; least headroom: {'endless' if headroom is None else f'{headroom:.0f} s'}")  # noqa: T201
        if status.broken:
            raise limits_broken(flow, status.broken)
    return {**totals, "headroom_seconds": headroom}
