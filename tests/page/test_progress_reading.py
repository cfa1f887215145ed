"""How far the run is that is under way, from the runs topic and the ledger, and what the page says of it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.page import made_up_reads as made_up

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.clusters.open_cluster import OpenCluster
from ferry.ledger.receipts import encode_receipt
from ferry.ledger.runs_topic import RunOpened, RunRecords, RunResult
from ferry.monitoring.runs import DagRunFacts
from ferry.page import documents, progress_reading
from ferry.page.documents import FlowView, PageFlow
from ferry.page.progress_reading import read_progress
from ferry.page.snapshots import NEVER_READ, Snapshot

pytestmark = pytest.mark.unit

FLOW = PageFlow("A->B", "A", "B", "ferry.A.B", "ferry.A.B.verify", None, None, True, "mm2.properties")
RUN = RunOpened("manual__1", made_up.iso(30), "latest")
FOLLOWS = RunOpened("scheduled__1", made_up.iso(600), "following until …", follow_until=made_up.iso(-86_400))
ENDED = RunResult("", made_up.iso(1), 1.0, 1.0)
COMMITS = [made_up.receipt("orders", 0, start, start + 1_000) for start in range(0, 4_000, 1_000)]


def shown(
    found: dict[str, Any] | None,
    opened: RunOpened | None = RUN,
    *,
    dag_runs: tuple[DagRunFacts, ...] = (),
    topics: tuple[str, ...] = ("orders",),
) -> tuple[str | None, str, float | None]:
    """Run, text and share of what was read of a flow with 9,000 records in each partition."""
    view = view_of(opened, dag_runs=dag_runs, topics=topics)
    document = documents.progress(view, NEVER_READ if found is None else Snapshot(found, time.time()), time.time())
    return document["run_id"], document["text"], document["share"]


def view_of(opened: RunOpened | None, *, dag_runs: tuple[DagRunFacts, ...] = (), topics: tuple[str, ...] = ("orders",)) -> FlowView:
    rows = [made_up.partition_row(topic, number, made_up.END) for topic in topics for number in range(2)]
    runs = made_up.runs([made_up.run_summary(1)], opened=[opened] if opened else [])
    return FlowView(FLOW, Snapshot(made_up.overview_of(rows), time.time()), Snapshot(runs, time.time()), dag_runs)


def test_a_run_has_done_what_its_receipts_say_and_the_rest_is_left() -> None:
    run_id, text, share = shown(made_up.progress(RUN, COMMITS))
    assert (run_id, share) == ("manual__1", 4_000 / 18_000)
    assert text.startswith("4,000 of 18,000 records (22%), 0.2 MB/s, about 28 s left; most left: orders-1 (9,000), orders-0 (5,000)")


def test_a_partition_that_the_run_has_passed_since_the_last_read_has_nothing_left() -> None:
    _, text, _ = shown(made_up.progress(RUN, [made_up.receipt("orders", 0, 0, made_up.END + 500)]))
    assert text == "9,500 of 18,500 records (51%), about 5 s left; most left: orders-1 (9,000)"


def test_how_far_the_flow_is_behind_is_what_the_run_has_left_by_its_commits() -> None:
    def left(run: RunOpened) -> int | None:
        read = Snapshot(made_up.progress(run, COMMITS), time.time())
        found: int | None = documents.progress(view_of(run), read, time.time())["left"]
        return found

    assert left(RUN) == 14_000
    assert left(replace(RUN, topics=("orders",))) is None, "others may lag too"
    assert left(replace(RUN, bound="2026-01-01")) is None


def test_only_the_topics_of_the_run_are_left() -> None:
    only = replace(RUN, topics=("orders",))
    assert " of 18,000 records" in shown(made_up.progress(only, COMMITS), only, topics=("orders", "clicks"))[1]
    assert " of 36,000 records" in shown(made_up.progress(RUN, COMMITS), topics=("orders", "clicks"))[1]


@pytest.mark.parametrize("bound", ["2026-01-01T00:00:00+00:00", "2026-01-01"])
def test_what_is_left_up_to_another_end_is_not_known(bound: str) -> None:
    run = replace(RUN, bound=bound)
    assert shown(made_up.progress(run, COMMITS), run) == ("manual__1", "4,000 records, 0.2 MB/s", None)


def test_records_of_other_runs_do_not_count() -> None:
    others = made_up.progress(replace(RUN, run_id="manual__0"), COMMITS)
    assert others["progress"]["records"] == 4_000
    assert shown(others) == ("manual__1", "nothing is copied yet", None)


def test_a_run_that_follows_says_how_far_it_is_behind() -> None:
    commit = replace(COMMITS[0], max_timestamp=round((time.time() - 1.2) * 1000))
    run_id, text, share = shown(made_up.progress(FOLLOWS, [commit]), FOLLOWS)
    assert (run_id, share) == ("scheduled__1", None)
    assert re.fullmatch(
        r"following: records are on the target after \d+\.\d s; the newest records were committed less than 0\.1 s ago", text
    )


def test_a_run_that_follows_is_shown_until_the_next_one_has_taken_over() -> None:
    starts = DagRunFacts("scheduled__2", "running", made_up.iso(3), None, "/dags/d/runs/2")
    run_id, text, _ = shown(made_up.progress(FOLLOWS, COMMITS[:1]), FOLLOWS, dag_runs=(starts,))
    assert run_id == "scheduled__1"
    assert text.startswith("following: ")


def test_before_and_after_a_run_the_page_says_so() -> None:
    starts = DagRunFacts("manual__2", "running", made_up.iso(3), None, "/dags/d/runs/2")
    assert shown({}, None, dag_runs=(starts,)) == ("manual__2", "nothing is copied yet", None)
    assert shown(made_up.progress(RUN, COMMITS, over=True), None) == (None, "", None)
    assert shown(None) == ("manual__1", "", None)


def test_a_try_that_has_ended_is_not_taken_for_the_end_of_the_copy() -> None:
    run_id, text, share = shown(made_up.progress(RUN, COMMITS, over=True))
    assert (run_id, share) == ("manual__1", 4_000 / 18_000)
    assert text == "this try has ended; 4,000 of 18,000 records (22%); most left: orders-1 (9,000), orders-0 (5,000)"
    going = DagRunFacts(FOLLOWS.run_id, "running", made_up.iso(3), None, "/dags/d/runs/1")
    assert shown(made_up.progress(FOLLOWS, over=True), FOLLOWS, dag_runs=(going,))[1:] == ("this try has ended", None)


@pytest.mark.parametrize(
    ("newer", "follows"),
    [
        (DagRunFacts("scheduled__2", "queued", made_up.iso(3), None, "/dags/d/runs/2"), True),
        (DagRunFacts("scheduled__2", "success", made_up.iso(3), made_up.iso(1), "/dags/d/runs/2"), True),
        (DagRunFacts("scheduled__2", "running", made_up.iso(3), None, "/dags/d/runs/2"), False),
    ],
)
def test_the_run_under_way_is_not_always_the_newest(newer: DagRunFacts, follows: bool) -> None:
    view = view_of(FOLLOWS, dag_runs=(newer, replace(newer, run_id="scheduled__3", state="queued", finished=None)))
    (flow,) = documents.overview([view], time.time())["flows"]
    assert flow["last_run"]["run_id"] == "scheduled__3"
    assert (flow["under_way"]["run_id"], flow["under_way"]["follows"]) == ("scheduled__1" if follows else "scheduled__2", follows)
    found = documents.progress(view, Snapshot(made_up.progress(FOLLOWS, COMMITS[:1]), time.time()), time.time())
    assert (found["run_id"], found["follows"], found["text"].startswith("following: ")) == ("scheduled__1", True, True)


def test_the_newest_run_is_read_or_one_that_follows_again_after_one_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    going, done = RunRecords(opened=named("a", RUN)), RunRecords(opened=named("b", RUN), result=ENDED)
    follower, late = RunRecords(opened=named("c", FOLLOWS)), RunRecords(opened=named("d", FOLLOWS, follow_until=made_up.iso(1)))

    reads = ledger_with(monkeypatch)
    for runs, found in (
        ([], None),
        ([done], ("b", True)),
        ([done, going], ("a", False)),
        ([going, done], ("b", True)),
        ([follower, done], ("c", False)),
        ([follower, going], ("a", False)),
        ([late, done], ("b", True)),
    ):
        known = {run.opened.run_id: run for run in runs if run.opened is not None}
        monkeypatch.setattr(progress_reading, "read_recent_runs", lambda _, known=known: known)
        document = read_progress(A_TO_B)
        assert (document and (document["run_id"], document["over"])) == (found or {}), known
    assert reads == [{0: 7}, {0: 7}, {0: 7}, "the last minute", {0: 7}, {0: 7}], "nothing of a flow that never ran"


def test_each_look_reads_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        InternalRecord(0, 7 + number, 1_000, *encode_receipt(replace(receipt, run_id="a"))) for number, receipt in enumerate(COMMITS[:3])
    ]
    reads = ledger_with(monkeypatch, records[:1], records[1:], [])
    known = {"a": RunRecords(opened=named("a", RUN))}
    monkeypatch.setattr(progress_reading, "read_recent_runs", lambda _: known)
    assert [read_progress(A_TO_B)["progress"]["records"] for _ in range(3)] == [1_000, 3_000, 3_000]
    assert reads == [{0: 7}, {0: 8}, {0: 10}]
    monkeypatch.setattr(progress_reading, "read_recent_runs", lambda _: {**known, "b": RunRecords(opened=named("b", RUN))})
    assert read_progress(A_TO_B)["progress"]["records"] == 0
    assert reads[-1] == {0: 7}


def ledger_with(monkeypatch: pytest.MonkeyPatch, *parts: list[InternalRecord]) -> list[object]:
    """A ledger that gives one of these at each read; where the reads begin."""
    reads, left = list[object](), iter(parts)

    class Ledger:
        def offsets_at(self, *_: object) -> str:
            return "the last minute"

        def read(self, _: str, since: Any, *, complete: bool) -> list[InternalRecord]:
            assert not complete
            reads.append(since if isinstance(since, str) else {**since})
            return next(left, [])

    monkeypatch.setattr(OpenCluster, "reader", lambda _: Ledger())
    monkeypatch.setattr(progress_reading, "_known", {})
    return reads


A_TO_B: Any = SimpleNamespace(name="A->B", ledger_topic="ledger", source=None, target=SimpleNamespace(alias="B"))


def named(run_id: str, run: RunOpened, **more: Any) -> RunOpened:
    return replace(run, run_id=run_id, ledger_ends={0: 7}, **more)
