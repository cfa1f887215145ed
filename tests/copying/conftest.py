"""Running flows in this process, against real brokers."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable
from datetime import datetime

import pytest

from ferry.config import Flow
from ferry.copying import pipeline
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.reporting.run_report import RunReport

RunFlow = Callable[..., RunReport]


@pytest.fixture
def run_flow() -> RunFlow:
    """One whole run: `run_flow(flow, until=…, since=…)`; the report of what it did."""
    numbers = itertools.count(1)

    def run(flow: Flow, *, since: datetime | None = None, until: datetime | None = None, runner: object = None) -> RunReport:
        request = RunRequest(flow.name, f"run-{next(numbers)}-{secrets.token_hex(3)}", until=until, since=since, backfill=since is not None)
        planned = pipeline.plan_run(flow, request)
        if planned.needs_preparation:
            pipeline.prepare_topics(flow, request)
        if planned.needs_copy:
            pipeline.copy_ranges(flow, request, runner or InlineLaneRunner(), lambda _: None)
        return (
            pipeline.read_report(flow, request) if planned.needs_preparation or planned.needs_copy else pipeline.idle_report(flow, planned)
        )

    return run
