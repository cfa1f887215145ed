"""Sums, search, order and pages of topics."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.page.made_up_reads import overview_of

from ferry.clusters.logs.held_back import LastStableLag, OpenTransaction
from ferry.clusters.net.partitions import TopicPartition
from ferry.config.settings import LAG_RECORDS
from ferry.ledger.run_report import LossReport, PartitionFailure, Skipped
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.limits import BrokenLimit
from ferry.monitoring.missing import Missing
from ferry.monitoring.verdict import verdict_of
from ferry.page.flow_reading import LEFT_OUT_NAMED, LOSSES_NAMED, MISSING_NAMED, OPEN_NAMED, STOPPED_NAMED, _cut
from ferry.page.overview import SORTS, overview_from, page_of_topics

pytestmark = pytest.mark.unit

GAP = Missing("a", 0, 3, 10, 1_000)
OPEN = OpenTransaction(4711, 3, 5, 1_000, "billing-7", "Ongoing", 1_000, 900_000)
HEALTH = FlowHealth(
    "A->B",
    last_stable_lags=(LastStableLag("a", 0, "B", "b:9092", TopicPartition("A.a", 0), 5, 8, 4_500, OPEN, overdue=True),),
    lacking=(Skipped("cluster B", "it is old"),),
    losses=(LossReport("a", 0, 5, 9, "dropped"),),
    losses_cut=2,
    lost_records_cut=8,
    missing=(GAP,),
    stopped=(PartitionFailure("a", -1, "NotAuthorized", "hidden"),),
    stopped_cut=1,
    broken=(BrokenLimit(LAG_RECORDS, "a", 11, 10),),
    ran=False,
)


def row(
    topic: str, number: int = 0, *, records: int = 0, size: int = 0, seconds: float = 0.0, headroom: float | None = None
) -> PartitionStatus:
    return PartitionStatus(topic, number, f"A.{topic}", 0, records, records, size, seconds, headroom, None, 0)


rows = st.builds(
    row,
    st.sampled_from(["a", "b", "C-long", "orders"]),
    st.integers(0, 9),
    records=st.integers(0, 100),
    size=st.integers(-1, 1000),
    seconds=st.sampled_from([-1.0, 0.0, 5.5, 80.0]),
    headroom=st.none() | st.floats(-10, 1e6),
)


def test_totals_say_what_is_not_known() -> None:
    known, unknown = row("a", records=5, size=50, seconds=9.0, headroom=3.0), row("b", records=2, size=-1, seconds=-1.0)
    lag = {"lag_records": 7, "lag_bytes": -1, "lag_seconds": 9.0, "headroom_seconds": 3.0}
    assert overview_of((known, unknown)).totals == {"topics": 2, "partitions": 2, **lag}
    assert overview_of((unknown,)).totals["lag_seconds"] == -1.0
    lag = {"lag_records": 0, "lag_bytes": 0, "lag_seconds": 0.0, "headroom_seconds": None}
    assert overview_of((row("c"),)).totals == {"topics": 1, "partitions": 1, **lag}


@given(st.lists(rows, max_size=30), st.sampled_from(sorted(SORTS)), st.booleans(), st.sampled_from(["", "A", "c", "nowhere"]))
def test_pages_are_one_ordered_list_cut_in_pieces(partitions: list[PartitionStatus], sort: str, descending: bool, search: str) -> None:
    seen = overview_of(partitions)
    whole = page_of_topics(seen.topics, search=search, sort=sort, descending=descending, limit=500)
    wanted = {entry.topic for entry in partitions if search.lower() in f"{entry.topic} {entry.remote_topic}".lower()}
    assert {entry["topic"] for entry in whole["topics"]} == wanted
    assert whole["total"] == len(wanted)
    name = "headroom_seconds" if sort == "headroom" else sort
    keys = [float("inf") if entry[name] is None else entry[name] for entry in whole["topics"]]
    assert keys == sorted(keys, reverse=descending)
    pieces = [
        page_of_topics(seen.topics, search=search, sort=sort, descending=descending, offset=begin, limit=2)["topics"]
        for begin in range(0, len(wanted) + 2, 2)
    ]
    assert [entry for piece in pieces for entry in piece] == whole["topics"]
    assert sum(entry["lag_records"] for entry in whole["topics"]) == sum(entry.lag_records for entry in partitions if entry.topic in wanted)


@given(st.lists(rows, max_size=20))
def test_an_overview_travels_as_json(partitions: list[PartitionStatus]) -> None:
    beside_heartbeats = [replace(entry, heartbeats=entry.topic == "a") for entry in partitions]
    document = {
        "rows": [astuple(entry) for entry in beside_heartbeats],
        "losses": [],
        "losses_total": 3,
        "health": asdict(HEALTH),
        "losses_by_topic": {"a": 2},
    }
    found = overview_from(json.loads(json.dumps(document)))
    assert found.health == replace(HEALTH, partitions=tuple(beside_heartbeats))
    assert (found.health.losses_total, found.health.lost_records) == (3, 12)
    assert {entry.topic: entry.missing for entry in found.topics} == {name: 7 if name == "a" else 0 for name in found.by_topic}
    assert found.totals["lag_records"] == sum(entry.lag_records for entry in partitions if entry.topic != "a")
    assert (found.totals["topics"], found.totals["partitions"]) == (len(found.by_topic), len(partitions))
    assert {entry.topic: entry.losses for entry in found.topics} == {name: 2 if name == "a" else 0 for name in found.by_topic}


def test_the_totals_count_also_what_was_cut() -> None:
    losses = tuple(LossReport("a", 0, start, start + 2, "dropped") for start in range(LOSSES_NAMED + 3))
    stopped = tuple(PartitionFailure("a", number, "NotAuthorized", "hidden") for number in range(STOPPED_NAMED + 5))
    (held,) = HEALTH.last_stable_lags
    lags = (replace(held, overdue=False),) * OPEN_NAMED + (held,)
    whole = FlowHealth("A->B", (row("a"),), lags, losses=losses, stopped=stopped, missing=(GAP,) * (MISSING_NAMED + 1))
    expected = (Skipped("payments", "it was copied before", True),) * (LEFT_OUT_NAMED + 2)
    whole = replace(whole, left_out=(Skipped("other", "not in topics", False), *expected))
    found = _cut(whole)
    assert (found.losses_total, found.lost_records) == (len(losses), 2 * len(losses))
    assert (len(found.losses), len(found.stopped), found.stopped_cut, len(found.missing)) == (LOSSES_NAMED, STOPPED_NAMED, 5, MISSING_NAMED)
    assert (len(found.last_stable_lags), found.held) == (OPEN_NAMED, (held,)), "what has been open for too long comes first"
    assert (found.left_out, found.left_out_cut) == (expected[:-2], 2), "the page has lines about all of them"
    assert verdict_of(found, 0.0).reasons[:2] == verdict_of(whole, 0.0).reasons[:2]
