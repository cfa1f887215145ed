"""What the page is told of a flow, beside its verdict."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.page import made_up_reads as made_up
from tests.page.scenarios import FLOW, SCENARIOS

import ferry.page
from ferry.monitoring.missing import COMPACTED, Missing
from ferry.monitoring.verdict import _RUN
from ferry.page.documents import TOPICS_NAMED, FlowView, history, overview
from ferry.page.overview import Overview
from ferry.page.reads import ReadName
from ferry.page.snapshots import Snapshot

pytestmark = pytest.mark.unit


def view_of(scenario: str) -> FlowView:
    stage = SCENARIOS[scenario]()
    (facts, *_) = stage.known.flows
    seen, found = (Snapshot(stage.reads[FLOW][name](""), time.time()) for name in (ReadName.OVERVIEW, ReadName.RUNS))
    return FlowView(facts, seen, found, paused=stage.paused)


@pytest.mark.parametrize(
    ("scenario", "step", "command"),
    [
        ("healthy", None, ""),
        ("new", "run", "ferry run mm2.properties --flow 'A->B'"),
        ("loss", "ack-loss", "ferry ack-loss mm2.properties --flow 'A->B'"),
        ("missing", "backfill", "ferry backfill mm2.properties --flow 'A->B' --topic orders --from 1970-01-01T00:00:01Z --until "),
        ("paused", "unpause", ""),
        ("failing", None, ""),
    ],
)
def test_the_next_step_has_a_command_if_one_does_it(scenario: str, step: str | None, command: str) -> None:
    (flow,) = overview([view_of(scenario)], time.time())["flows"]
    assert flow["step"] == step
    assert flow["command"].startswith(command)
    assert bool(flow["command"]) is bool(command)


def test_the_summary_has_what_it_does_not_count_and_what_is_not_its_lag() -> None:
    (dropped,) = overview([view_of("dropped")], time.time())["flows"]
    assert (dropped["health"], dropped["not_copied"], dropped["word"]) == ("left_out",) + ("1 topic is not copied",) * 2
    (held,) = overview([view_of("held")], time.time())["flows"]
    assert (held["health"], held["not_copied"], held["word"]) == ("lagging", "", "1 group not synced")


def test_while_topics_are_stopped_the_summary_names_those_that_are_fine() -> None:
    assert [overview([view_of(name)], time.time())["flows"][0]["up_to_date"] for name in ("failing", "healthy")] == ["audit.log", ""]


def test_a_run_that_follows_says_until_when_and_what_copies_then() -> None:
    view = view_of("following")
    (flow,) = overview([view], time.time())["flows"]
    assert flow["under_way"]["until"].startswith("20")
    assert (flow["after_it"], flow["next_run"]) == ("then no run is due: the flow has no schedule", "")
    yearly = replace(view, facts=replace(view.facts, cron="0 3 1 1 *"))
    (flow,) = overview([yearly], time.time())["flows"]
    assert flow["after_it"] == f"then records wait for the {flow['next_run']}"
    assert " 03:00 UTC, in " in flow["next_run"]
    (paused,) = overview([replace(yearly, paused=True)], time.time())["flows"]
    assert paused["next_run"] == "", "none begins"
    (flow,) = overview([view_of("copying")], time.time())["flows"]
    assert flow["under_way"]["until"] is None


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ([{"retention_seconds": 600.0}, {"retention_seconds": 900.0}], "1970-01-01T00:26:40+00:00"),
        ([{"retention_seconds": 600.0}, {"lag_records": 1, "lag_seconds": 9.0, "headroom_seconds": 60.0}], "1970-01-01T00:17:40+00:00"),
        ([{"retention_seconds": 600.0}, {"lag_records": 1, "lag_seconds": -1.0}], None),
        ([{}], None),
        ([{"retention_seconds": 9_223_372_036_854_775.807}], None),
    ],
)
def test_an_old_read_says_until_when_the_source_keeps_what_is_not_copied(changes: list[dict[str, float]], kept: str | None) -> None:
    rows = [replace(made_up.partition_row("orders", number), **change) for number, change in enumerate(changes)]  # type: ignore[arg-type]
    view = replace(view_of("healthy"), overview=Snapshot(made_up.overview_of(rows), 1_000.0))
    (flow,) = overview([view], time.time())["flows"]
    assert flow["uncopied_until"] == kept


def test_topics_with_missing_records_say_whether_a_backfill_copies_them() -> None:
    gaps = (Missing("users", 0, 0, 7, obstacle=COMPACTED), Missing("orders", 0, 0, 5, 1_000), Missing("orders", 1, 0, 4))
    seen: Overview = made_up.overview(missing=gaps)
    view = replace(view_of("healthy"), overview=Snapshot(seen, time.time()))
    (flow,) = overview([view], time.time())["flows"]
    assert flow["missing"] == [{"topic": "orders", "records": 9, "closable": True}, {"topic": "users", "records": 7, "closable": False}]


def test_a_backfill_is_offered_however_much_is_missing_elsewhere() -> None:
    compacted = [Missing(f"compacted-{number}", 0, 0, 1_000, obstacle=COMPACTED) for number in range(TOPICS_NAMED)]
    seen: Overview = made_up.overview(missing=(*compacted, Missing("small", 0, 0, 1, 1_000)))
    (flow,) = overview([replace(view_of("healthy"), overview=Snapshot(seen, time.time()))], time.time())["flows"]
    assert (flow["step"], flow["missing"][0]["topic"], len(flow["missing"])) == ("backfill", "small", TOPICS_NAMED)


def test_the_page_takes_from_the_next_step_what_its_button_says() -> None:
    script = (Path(ferry.page.__file__).parent / "static" / "next_step.js").read_text(encoding="utf-8")
    assert f'const RUN = "{_RUN}";' in script


def test_a_run_that_only_airflow_knows_is_in_the_history_if_it_failed() -> None:
    lagging = SCENARIOS["refused"]().ended[0]
    failed = replace(lagging, run_id="scheduled__dead", reason=("cluster A does not answer", "ClusterUnreachable"))
    view = replace(view_of("healthy"), dag_runs=(failed, replace(lagging, run_id="manual__running", state="running", finished=None)))
    found = history(view, time.time(), 7)["points"]
    assert [(point["run_id"], point["state"], point["records"]) for point in found[-2:]][1:] == [("scheduled__dead", "failed", None)]
    assert "manual__running" not in {point["run_id"] for point in found}
