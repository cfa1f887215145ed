"""Copying in this process, as other tests do, for tests of what comes before and after a copy."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.recovery.rooms import POLICIES, Room
from tools.kafka import SandboxCluster

from ferry.clusters.admin import cluster_admin as admin
from ferry.config import Flow
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.ledger.run_report import RunReport
from ferry.pipeline.report import assemble_report
from ferry.pipeline.run import Run

CopyFlow = Callable[[Flow], RunReport]


@pytest.fixture
def copy_flow() -> CopyFlow:
    """One run up to the end of the source; its report."""

    def copy(flow: Flow) -> RunReport:
        request = RunRequest(flow.name, f"run-{secrets.token_hex(4)}")
        Run(flow, request).prepare(spark_follows=True)
        Run(flow, request).copy(InlineLaneRunner(), lambda _: None)
        return assemble_report(flow, request)

    return copy


@pytest.fixture(params=list(POLICIES))
def room(
    request: pytest.FixtureRequest,
    config_file: Callable[..., Path],
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    topic_factory: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> Room:
    """One for each policy. Where nobody listens, that is known at once."""
    monkeypatch.setattr(admin, "FIRST_ATTEMPT_SECONDS", 2.0)
    monkeypatch.setattr(admin, "ANY_BROKER_SECONDS", 2.0)
    topic = topic_factory(source_cluster, partitions=2)
    lines = (
        *POLICIES[request.param],
        "B->A.enabled = true",
        f"topics = {topic}",
        "emit.heartbeats.enabled = false",
        "ferry.lanes = 2",
        f"groups = {topic}-.*",
    )
    return Room(source_cluster, target_cluster, config_file(*lines), topic, request.param)
