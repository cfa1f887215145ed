"""The clusters of all services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.drills.services.playing import Stage, started


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Started once."""
    with started(tmp_path_factory.mktemp("services")) as stage:
        yield stage
