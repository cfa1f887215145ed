"""The plan of a failover, by policy, in a room of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.recovery.rooms import POLICIES, Room
from tools.kafka import SandboxCluster

from ferry.clusters.admin import cluster_admin as admin


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
