"""When the runs of a schedule are due (pure). croniter is slow to load, and many flows have no schedule."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

# It contains nights and a weekend. Otherwise a schedule of working hours would look late each morning.
SPAN_SECONDS = 8 * 24 * 3600
# For schedules with few runs: a year of monthly ones.
LEAST_RUNS = 13
_SOME_MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


@lru_cache(maxsize=256)
def longest_pause(schedule: str | None) -> float | None:
    """The longest time between two runs of a cron expression, in s, over SPAN_SECONDS and LEAST_RUNS; None without one."""
    if not schedule:
        return None
    from croniter import croniter  # type: ignore[import-untyped]  # noqa: PLC0415 - see above

    moments = croniter(schedule, _SOME_MONDAY)
    first = before = moments.get_next(float)
    longest, runs = 0.0, 1
    while runs < LEAST_RUNS or before - first < SPAN_SECONDS:
        moment = moments.get_next(float)
        longest, before, runs = max(longest, moment - before), moment, runs + 1
    return longest


def next_due(schedule: str, now: float) -> float:
    """When the next run is due, in seconds since the epoch, as `now`."""
    from croniter import croniter  # noqa: PLC0415 - see above

    found: float = croniter(schedule, datetime.fromtimestamp(now, UTC)).get_next(float)
    return found


def last_due(schedule: str, deadline_seconds: int, now: datetime) -> datetime:
    """When the last run was due whose deadline has passed."""
    from croniter import croniter  # noqa: PLC0415 - see above

    found: datetime = croniter(schedule, now - timedelta(seconds=deadline_seconds)).get_prev(datetime)
    return found
