"""Sums, search, order and pages of topics."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.page.made_up_reads import overview_of

from ferry.config.settings import LAG_RECORDS
from ferry.ledger.run_report import LossReport, PartitionFailure
from ferry.monitoring.lag import Lag, PartitionStatus
from ferry.monitoring.limits import BrokenLimit
from ferry.monitoring.missing import Missing
from ferry.monitoring.signs import Held, Signs
from ferry.page.overview import SORTS, overview_from, page_of_topics

pytestmark = pytest.mark.unit

GAP = Missing("a", 0, 3, 10, 1_000)
SIGNS = Signs(
    "A->B",
    lag=Lag(7, -1, 9.0, None, 1),
    losses=(LossReport("a", 0, 5, 9, "dropped"),),
    losses_total=3,
    lost_records=12,
    missing=(GAP,),
    stopped=(PartitionFailure("a", -1, "NotAuthorized", "hidden"),),
    stopped_total=1,
    held=(Held("a", "A.a-0 on B", 3, "end it", 4.5),),
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
        "signs": asdict(SIGNS),
        "open_transactions": [],
        "losses_by_topic": {"a": 2},
    }
    found = overview_from(json.loads(json.dumps(document)))
    assert found.partitions == tuple(beside_heartbeats)
    assert found.signs == SIGNS
    assert {entry.topic: entry.missing for entry in found.topics} == {name: 7 if name == "a" else 0 for name in found.by_topic}
    assert found.totals["lag_records"] == sum(entry.lag_records for entry in partitions if entry.topic != "a")
    assert (found.totals["topics"], found.totals["partitions"]) == (len(found.by_topic), len(partitions))
    assert {entry.topic: entry.losses for entry in found.topics} == {name: 2 if name == "a" else 0 for name in found.by_topic}
