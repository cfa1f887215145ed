"""Limits of lag and headroom: which topics are beyond which, worst first."""

from __future__ import annotations

import json

import pytest

from ferry.config.settings import LAG_RECORDS, LAG_SECONDS, AlertSettings
from ferry.errors import ExitCode
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.limits import NAMED, RUN_NOW, BrokenLimit, broken_limits, limit_alerts, limits_broken

pytestmark = pytest.mark.unit


def partition(topic: str, number: int, records: int, seconds: float, headroom: float | None) -> PartitionStatus:
    return PartitionStatus(topic, number, f"A.{topic}", 0, records, records, -1, seconds, headroom, None, 0)


STATUS = [
    partition("orders", 0, 60, 100.0, 500.0),
    partition("audit", 0, 10, 20.0, 40.0),
    partition("orders", 1, 50, 90.0, None),
    partition("still", 0, 0, 0.0, None),
]


def test_without_limits_nothing_is_broken() -> None:
    assert broken_limits(AlertSettings(), STATUS) == ()
    assert not AlertSettings(deadline_seconds=1).has_limits


def test_records_add_up_over_a_topic_and_ages_do_not() -> None:
    assert broken_limits(AlertSettings(lag_records=109), STATUS) == (BrokenLimit(LAG_RECORDS, "orders", 110, 109),)
    assert broken_limits(AlertSettings(lag_records=110), STATUS) == ()
    assert broken_limits(AlertSettings(lag_seconds=99), STATUS) == (BrokenLimit(LAG_SECONDS, "orders", 100.0, 99),)
    assert broken_limits(AlertSettings(lag_seconds=100), STATUS) == ()


def test_headroom_is_a_lower_limit_and_none_is_endless() -> None:
    found = broken_limits(AlertSettings(headroom_seconds=501), STATUS)
    assert [(entry.topic, entry.value) for entry in found] == [("audit", 40.0), ("orders", 500.0)]
    assert broken_limits(AlertSettings(headroom_seconds=40), STATUS) == ()


def test_a_limit_of_zero_holds_when_everything_is_copied() -> None:
    assert broken_limits(AlertSettings(lag_records=0, lag_seconds=0), [STATUS[-1]]) == ()


def test_an_unknown_age_breaks_no_limit() -> None:
    assert broken_limits(AlertSettings(lag_seconds=0), [partition("t", 0, 5, -1.0, None)]) == ()


def test_the_error_names_topic_value_limit_and_what_to_do() -> None:
    problem = limits_broken("A->B", broken_limits(AlertSettings(lag_records=100, headroom_seconds=60), STATUS))
    assert str(problem) == (
        "A->B: topic audit: the source deletes uncopied records in 40 s, below ferry.alert.headroom.seconds=60; "
        "topic orders is 110 records behind, above ferry.alert.lag.records=100"
    )
    assert problem.exit_code is ExitCode.PARTLY_FAILED
    assert problem.next_step == RUN_NOW
    copied = limits_broken("A->B", broken_limits(AlertSettings(lag_records=100), STATUS), copied=True)
    assert str(copied).startswith("A->B: the copy is fine, but a limit is broken: topic orders is 110 records behind")
    assert "run more often" in limits_broken("A->B", broken_limits(AlertSettings(lag_records=100), STATUS)).next_step


def test_limits_broken_by_many_topics_are_one_line() -> None:
    many = [partition(f"t{number:04}", 0, 10 + number, 0.0, None) for number in range(2000)]
    found = broken_limits(AlertSettings(lag_records=0), many)
    assert len(found) == 2000
    assert found[0].topic == "t1999"
    assert str(limits_broken("A->B", found)).endswith(
        f"t{2000 - NAMED} is {2010 - NAMED:,} records behind, above ferry.alert.lag.records=0 and {2000 - NAMED:,} more topics"
    )


def test_one_alert_for_each_key_with_the_worst_of_its_topics() -> None:
    settings = AlertSettings(lag_seconds=10, headroom_seconds=1000)
    headroom, lag = limit_alerts("A->B", broken_limits(settings, STATUS), run_id="r", url="u")
    assert (headroom.severity, headroom.value, headroom.limit) == ("critical", 40.0, 1000)
    assert (lag.severity, lag.value, lag.limit, lag.run_id, lag.url) == ("warning", 100.0, 10, "r", "u")
    assert "topic orders is 100 s behind, above ferry.alert.lag.seconds=10" in lag.message
    assert "topic audit" in lag.message
    assert json.loads(json.dumps(lag.document()))["key"] == "A->B/limit/ferry.alert.lag.seconds"
