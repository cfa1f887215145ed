"""A run's measurements as Airflow's own metrics, over StatsD or OpenTelemetry, whichever Airflow is configured for.

Names are `ferry.` and MM2's name; tags are MM2's. Metrics must never fail a task: what cannot be sent is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from airflow.sdk.observability import stats

from ferry.ledger.measurement import Measurement

PREFIX = "ferry."

log = logging.getLogger(__name__)


def emit(found: Iterable[Measurement]) -> None:
    """Send all of them."""
    for one in found:
        try:
            if one.counter:
                stats.incr(PREFIX + one.name, int(one.value), tags=dict(one.tags))
            else:
                stats.gauge(PREFIX + one.name, one.value, tags=dict(one.tags))
        except Exception:
            log.warning("metric %s could not be sent", one.name, exc_info=True)
            return
