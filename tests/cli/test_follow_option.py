"""--follow takes a length of time, and wins over the property."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.cli.options import follow_until
from ferry.errors import ArgumentError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("usual", "text", "seconds"),
    [(0, "90", 90), (0, "90s", 90), (0, "30m", 1_800), (7, "2h", 7_200), (900, None, 900), (0, None, None), (900, "0", None)],
)
def test_until_when_a_run_follows(usual: int, text: str | None, seconds: int | None) -> None:
    flow: Any = SimpleNamespace(follow_seconds=usual)
    before = datetime.now(UTC)
    until = follow_until(flow, text)
    if seconds is None:
        assert until is None
    else:
        assert until is not None
        assert seconds <= (until - before).total_seconds() < seconds + 60


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5h", "30 m", "3d", "1" * 10])
def test_what_is_no_length_of_time_is_refused_by_name(text: str) -> None:
    flow: Any = SimpleNamespace(follow_seconds=0)
    with pytest.raises(ArgumentError, match=r"^--follow .* is not a length of time"):
        follow_until(flow, text)


@pytest.mark.parametrize("text", ["168h", "145h", "518401", "999999999h"])
def test_a_run_follows_no_longer_than_its_report_can_be_read(text: str) -> None:
    flow: Any = SimpleNamespace(follow_seconds=0)
    assert follow_until(flow, "144h") is not None
    with pytest.raises(ArgumentError, match=r"^--follow .* is too long: a run follows for at most 144h"):
        follow_until(flow, text)
