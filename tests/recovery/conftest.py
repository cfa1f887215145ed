"""Copying in this process, as other tests do, for tests of what comes before and after a copy."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from ferry.config import Flow
from ferry.copying import pipeline
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.reporting.run_report import RunReport

CopyFlow = Callable[[Flow], RunReport]


@pytest.fixture
def copy_flow() -> CopyFlow:
    """One run up to the end of the source; its report."""

    def copy(flow: Flow) -> RunReport:
        request = RunRequest(flow.name, f"run-{secrets.token_hex(4)}")
        pipeline.prepare_topics(flow, request)
        pipeline.copy_ranges(flow, request, InlineLaneRunner(), lambda _: None)
        return pipeline.read_report(flow, request)

    return copy
