"""When the runs of a schedule are due (pure). croniter is slow to load, and many flows have no schedule."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from ferry.errors import span
from ferry.wire.strict_json import parse_time

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


def last_due(schedule: str, deadline_seconds: int, now: datetime) -> datetime:
    """When the last run was due whose deadline has passed."""
    from croniter import croniter  # noqa: PLC0415 - see above

    found: datetime = croniter(schedule, now - timedelta(seconds=deadline_seconds)).get_prev(datetime)
    return found


def next_due(schedule: str | None, now: float) -> float | None:
    """When the next run is due, like `now` in seconds since the epoch; None without a schedule."""
    if not schedule:
        return None
    from croniter import croniter  # noqa: PLC0415 - see above

    return float(croniter(schedule, datetime.fromtimestamp(now, UTC)).get_next(float))


def minute(moment: datetime) -> str:
    """`2026-12-01 03:00 UTC`: with date and zone, because it may be of another day, and its reader in another zone."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def told_next(due: float | None, now: float) -> str:
    """`next run 2026-12-01 03:00 UTC, in 19 h`; empty without a schedule. `due`: as of next_due."""
    return "" if due is None else f"next run {minute(datetime.fromtimestamp(due, UTC))}, in {span(due - now)}"


def told_after(until: str, due: float | None, now: float, *, on_arrival: bool) -> str:
    """What copies when the run ends that follows until `until` (ISO), in words. `on_arrival`: runs also begin when records arrive."""
    if due is not None and due <= parse_time(until).timestamp():
        return f"the {told_next(due, now)}, takes over"
    if on_arrival:
        return "then a run begins when records arrive"
    return "then no run is due: the flow has no schedule" if due is None else f"then records wait for the {told_next(due, now)}"
