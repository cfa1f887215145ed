"""Two services of `make services`: one that Ferry recognises, and one that refuses what the file asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.drills.services.life import OTHER_LINES, lines_for, lived, pair_for, refused_or_exact
from tests.drills.services.playing import Stage

from ferry.clusters.admin.service_profiles import CONFLUENT_CLOUD, REDPANDA

pytestmark = [pytest.mark.long, pytest.mark.brokers]


def test_redpanda(stage: Stage, tmp_path: Path) -> None:
    stage.play(REDPANDA)
    pair = pair_for(stage, REDPANDA, tmp_path, lines_for(REDPANDA), "short")
    lived(pair, REDPANDA)
    (told,) = [entry["found"] for entry in pair.diagnosed() if (entry["where"], entry["check"]) == ("cluster B", "service")]
    assert told.startswith("Redpanda; ")


def test_one_replica_at_confluent_cloud(stage: Stage, tmp_path: Path) -> None:
    """The service refuses one replica; Ferry then leaves the number to its brokers, so nothing is asked of the user."""
    stage.play(CONFLUENT_CLOUD)
    replicas = ("replication.factor = 1", "ferry.internal.topics.replication.factor = 1")
    pair = pair_for(stage, CONFLUENT_CLOUD, tmp_path, (*OTHER_LINES, *replicas), "short")
    assert refused_or_exact(pair) == ""
    (service,) = [entry for entry in pair.diagnosed() if (entry["where"], entry["check"]) == ("cluster B", "service")]
    assert (service["verdict"], service["fix"]) == ("ok", "")
