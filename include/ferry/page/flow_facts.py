"""What the page knows of a flow without asking a cluster: names, DAGs, schedule, limits (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferry.config.settings import AlertSettings
from ferry.monitoring.schedule import longest_pause

if TYPE_CHECKING:
    from ferry.config import Flow


@dataclass(frozen=True)
class FlowFacts:
    """One enabled flow. `interval_seconds`: the longest between two runs of its schedule; None: it has none."""

    flow: str
    source: str
    target: str
    dag_id: str
    verify_dag_id: str
    schedule: str | None
    interval_seconds: float | None
    copies: bool
    limits: AlertSettings


def flow_facts(flow: Flow, dag_id: str, verify_dag_id: str) -> FlowFacts:
    """From the config."""
    interval = longest_pause(flow.schedule) if flow.schedule else None
    return FlowFacts(
        flow.name, flow.source.alias, flow.target.alias, dag_id, verify_dag_id, flow.schedule, interval, flow.copies, flow.alerts
    )
