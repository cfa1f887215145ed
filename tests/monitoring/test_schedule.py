"""The longest pause that a schedule means, so that nothing looks late in it."""

from __future__ import annotations

import pytest

from ferry.monitoring.schedule import longest_pause

pytestmark = pytest.mark.unit

HOUR, DAY = 3600, 86_400


@pytest.mark.parametrize(
    ("schedule", "longest"),
    [
        ("* * * * *", 60),
        ("*/10 * * * *", 600),
        ("*/5 8-18 * * *", 13 * HOUR + 300),
        ("*/5 8-18 * * 1-5", 2 * DAY + 13 * HOUR + 300),
        ("0 6 * * 1-5", 3 * DAY),
        ("0 0 1 * *", 31 * DAY),
        ("0 0 1 1 *", 366 * DAY),
    ],
)
def test_nights_week_ends_and_long_months_count(schedule: str, longest: float) -> None:
    assert longest_pause(schedule) == longest
