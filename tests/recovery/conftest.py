"""The plan of a failover, by policy, in a room of its own."""

from __future__ import annotations

import pytest
from tests.conftest import Lab
from tests.recovery.rooms import POLICIES, Room

from ferry.clusters.admin import cluster_admin as admin


@pytest.fixture(params=list(POLICIES))
def room(request: pytest.FixtureRequest, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Room:
    """One for each policy. Where nobody listens, that is known at once."""
    monkeypatch.setattr(admin, "FIRST_ATTEMPT_SECONDS", 2.0)
    monkeypatch.setattr(admin, "ANY_BROKER_SECONDS", 2.0)
    topic = lab.topic(lab.source, partitions=2)
    lines = (
        *POLICIES[request.param],
        "B->A.enabled = true",
        f"topics = {topic}",
        "emit.heartbeats.enabled = false",
        "ferry.lanes = 2",
        f"groups = {topic}-.*",
    )
    return Room(lab.source, lab.target, lab.config(*lines), topic, request.param)
