"""Whether the run that was due has ended. Airflow itself cannot say so while its scheduler is down or the DAG is paused.

A run is due at each time of the flow's schedule, and must end within the deadline. Every run counts whose summary in the runs topic is
younger, also one that a person started. A summary with a time in the future comes from a machine whose clock is ahead, and does not count.
"""

from datetime import UTC, datetime, timedelta

from ferry.clusters.internal_reader import InternalTopicReader
from ferry.config import Flow
from ferry.config.settings import DEADLINE_SECONDS
from ferry.ledger.run_summary import KEY_PREFIX
from ferry.monitoring.limits import BrokenLimit


def overdue_run(flow: Flow, now: datetime | None = None) -> BrokenLimit | None:
    """The deadline as a broken limit if no run has ended since one was due. None without a schedule or a deadline."""
    deadline = flow.alerts.deadline_seconds
    if deadline is None or flow.schedule is None:
        return None
    moment = now or datetime.now(UTC)
    due = last_due(flow.schedule, deadline, moment)
    topic = flow.runs_topic
    with InternalTopicReader(flow.target) as reader:
        since = reader.offsets_at(topic, round(due.timestamp() * 1000))
        until = round(moment.timestamp() * 1000)
        ended = any(record.key.startswith(KEY_PREFIX) and record.timestamp <= until for record in reader.read(topic, since, complete=False))
    return None if ended else BrokenLimit(DEADLINE_SECONDS, "", round((moment - due).total_seconds(), 3), deadline)


def last_due(schedule: str, deadline_seconds: int, now: datetime) -> datetime:
    """When the last run was due whose deadline has passed (pure)."""
    from croniter import croniter  # type: ignore[import-untyped]  # noqa: PLC0415 - slow to load, and only a status judges a schedule

    found: datetime = croniter(schedule, now - timedelta(seconds=deadline_seconds)).get_prev(datetime)
    return found
