"""The clusters of the matrix, shared by all pairs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.drills.matrix.stage import Stage


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Started as they are asked for, stopped at the end."""
    stage = Stage(tmp_path_factory.mktemp("matrix"))
    yield stage
    stage.close()
