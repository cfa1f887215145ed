"""A run request travels as JSON and refuses intervals that cannot be meant."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.copying.request import RunRequest, epoch_milliseconds
from ferry.errors import ArgumentError
from ferry.wire.strict_json import parse_time

pytestmark = pytest.mark.unit

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-9, minutes=-30))])
TIMES = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=ZONES)  # noqa: DTZ001 - bounds of naive draws
TOPICS = st.lists(st.text(min_size=1, max_size=8), max_size=3).map(tuple)


@given(st.text(), st.text(), st.none() | TIMES, TOPICS)
def test_round_trip(flow: str, run_id: str, until: datetime | None, topics: tuple[str, ...]) -> None:
    request = RunRequest(flow, run_id, until=until, topics=topics)
    again = RunRequest.from_json(request.to_json())
    assert again == request
    assert "\n" not in request.to_json()


@given(TIMES, TIMES)
def test_a_backfill_round_trip_or_an_empty_interval(first: datetime, second: datetime) -> None:
    if first >= second:
        with pytest.raises(ArgumentError, match="is empty; schedules need a data-interval timetable, a plain cron"):
            RunRequest("A->B", "r", since=first, until=second, backfill=True)
    else:
        request = RunRequest("A->B", "r", since=first, until=second, backfill=True)
        assert RunRequest.from_json(request.to_json()) == request


@pytest.mark.parametrize("bounds", [{}, {"since": datetime(2026, 1, 1, tzinfo=UTC)}, {"until": datetime(2026, 1, 1, tzinfo=UTC)}])
def test_a_backfill_needs_both_ends(bounds: dict[str, datetime]) -> None:
    with pytest.raises(ArgumentError, match="both ends"):
        RunRequest("A->B", "r", backfill=True, **bounds)


@given(TIMES)
def test_a_run_that_follows_has_no_other_end(moment: datetime) -> None:
    request = RunRequest("A->B", "r", follow_until=moment)
    assert RunRequest.from_json(request.to_json()) == request
    with pytest.raises(ArgumentError, match="run r: a run that follows has no end"):
        RunRequest("A->B", "r", until=moment, follow_until=moment)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "3", "{}", '{"flow": "A->B"}', json.dumps({"flow": "f", "run_id": "r", "until": "soon"})],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"not a RunRequest: ."):
        RunRequest.from_json(text)


def test_what_a_request_leaves_out_is_not_asked_for() -> None:
    bounded = '{"flow": "f", "run_id": "r", "since": "2026-01-01", "until": "2026-01-02"}'
    assert RunRequest.from_json('{"flow": "f", "run_id": "r"}') == RunRequest("f", "r")
    assert not RunRequest.from_json(bounded).backfill


def test_times_without_an_offset_are_utc() -> None:
    assert parse_time("2026-03-29T02:30:00") == datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
    assert parse_time("2026-03-29T02:30:00+02:00") == datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    assert epoch_milliseconds(datetime(1970, 1, 1, 0, 0, 1, 1000, tzinfo=UTC)) == 1001
    assert RunRequest("A->B", "r").bound == "latest"
