"""What several tests of the copying room use."""

from __future__ import annotations

import pytest
from tests.copying.appender_bench import Bench, new_bench


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """An appender, with a broker that keeps a log."""
    return new_bench(monkeypatch.setattr)
