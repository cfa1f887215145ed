"""The longest pause that a schedule means, so that nothing looks late in it."""

from __future__ import annotations

import pytest

from ferry.monitoring.schedule import longest_pause, next_due, told_next

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


def test_the_next_run_is_told_with_its_date_and_zone() -> None:
    """It may be of another day, and its reader in another zone."""
    now = 1_800_000_000.0  # 2027-01-15, 08:00
    assert told_next(next_due("0 3 * * *", now), now) == "next run 2027-01-16 03:00 UTC, in 19 h"
    assert (next_due(None, now), told_next(None, now)) == (None, "")
