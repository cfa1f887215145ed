"""Every managed service that Ferry knows, played by a proxy before real brokers: exact, or refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.drills.services.life import OTHER_LINES, create_beforehand, lines_for, lived, pair_for, refused_or_exact
from tests.drills.services.playing import Stage

from ferry.clusters.admin.service_profiles import SERVICES
from ferry.clusters.admin.services import ManagedService

pytestmark = [pytest.mark.services, pytest.mark.brokers]

BY_NAME = pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)


@BY_NAME
def test_with_the_settings_that_doctor_names(stage: Stage, service: ManagedService, tmp_path: Path) -> None:
    stage.play(service)
    pair = pair_for(stage, service, tmp_path, lines_for(service))
    if not service.takes_configs:
        create_beforehand(pair)
    lived(pair, service)


@BY_NAME
def test_as_a_newcomer_writes_the_file(stage: Stage, service: ManagedService, tmp_path: Path) -> None:
    """Without these settings, and with a number of replicas that one broker has: nothing stops in the middle."""
    stage.play(service)
    replicas = ("replication.factor = 1", "ferry.internal.topics.replication.factor = 1")
    pair = pair_for(stage, service, tmp_path, (*OTHER_LINES, *replicas), "plain")
    said = refused_or_exact(pair)
    assert "Traceback" not in said
    print(f"{service.name}: {said or 'exact'}")  # noqa: T201 - for the reader of -rP
