"""Groups of cursors say what the cursors say, whatever has happened to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.copying.cursors import BACKFILLED, COPIED, seed_at, task, unit

from ferry.copying import cursor_groups
from ferry.copying.cursor import PartitionCursor
from ferry.copying.cursor_groups import CursorGroups
from ferry.copying.lane_messages import Segment
from ferry.errors import NotAuthorized

pytestmark = pytest.mark.unit
NAMES = tuple(name for name, group in vars(CursorGroups).items() if isinstance(group, cursor_groups._Group))


def groups_of(groups: CursorGroups) -> dict[str, list[PartitionCursor]]:
    found = {name: list(getattr(groups, name)) for name in NAMES}
    return {name: cursors for name, cursors in found.items() if cursors}


def said_by(cursor: PartitionCursor) -> dict[str, list[PartitionCursor]]:
    holds = {
        "unfinished": not cursor.done,
        "touched": cursor.touched,
        "doubted": cursor.doubted and cursor.failure is None,
        "full": cursor.runs >= cursor_groups.RUNS_PER_RECEIPT,
        "failed": cursor.failure is not None,
        "troubled": cursor.troubled_since > 0,
        "behind": cursor.is_behind and not cursor.done and not cursor.troubled_since,
    }
    return {name: [cursor] for name, belongs in holds.items() if belongs}


STEPS: dict[str, Callable[[PartitionCursor], object]] = {
    "pass excluded": lambda cursor: cursor.pass_excluded(),
    "trouble": lambda cursor: setattr(cursor, "troubled_since", 5.0),
    "fetch": lambda cursor: cursor.fetched_to(10, 3),
    "catch up": lambda cursor: setattr(cursor, "is_behind", False),
    "accept": lambda cursor: cursor.accept(unit(4, 10, runs=((4, 1), (6, 1), (8, 1))), 0),
    "doubt": lambda cursor: setattr(cursor, "doubted", True),
    "abandon": lambda cursor: cursor.revert(),
    "skip": lambda cursor: cursor.skip(unit(4, 6, runs=((5, 1),)), "refused"),
    "lose": lambda cursor: cursor.lose(8, "expired"),
    "receipts": lambda cursor: cursor.receipts("run"),
    "commit": lambda cursor: cursor.confirm(),
    "lose the rest": lambda cursor: cursor.lose(20, "expired"),
    "fetch the last": lambda cursor: cursor.fetched_to(9, 3),
    "settle": lambda cursor: cursor.settle_fetched(),
    "commit the last": lambda cursor: cursor.confirm(),
    "abandon all": lambda cursor: cursor.revert(),
    "doubt again": lambda cursor: setattr(cursor, "doubted", True),
    "fail": lambda cursor: cursor.fail(NotAuthorized("gone")),
}


@pytest.mark.parametrize("left_out", [None, *STEPS])
def test_groups_follow_every_change(left_out: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step, also behind others than those that come before it here."""
    monkeypatch.setattr(cursor_groups, "RUNS_PER_RECEIPT", 3)
    segments = Segment(COPIED, 0, 20), Segment(BACKFILLED, 7, 9)
    cursor = PartitionCursor(replace(task(*segments, seed=seed_at(0)), excluded=((0, 4),)))
    groups = CursorGroups([cursor])
    assert groups_of(groups) == said_by(cursor) == {"unfinished": [cursor], "touched": [cursor], "behind": [cursor]}
    seen = set[str]()
    for name, step in STEPS.items():
        if name != left_out:
            step(cursor)
            assert groups_of(groups) == said_by(cursor), name
            assert groups.runs == cursor.runs
            seen |= said_by(cursor).keys()
    assert seen == set(NAMES) or left_out is not None


def test_news_is_what_has_changed_since_it_was_taken_out() -> None:
    cursors = [PartitionCursor(task(Segment(COPIED, 0, 20))) for _ in range(3)]
    groups = CursorGroups(cursors)
    news, others = groups.news(), groups.news()
    assert list(news) == cursors, "at first nobody knows them"
    news.clear()
    groups.sort()
    assert list(news) == []
    cursors[2].fetched_to(5, 3)
    assert list(groups.touched) == []
    cursors[0].fetched_to(5, 3)
    groups.sort()
    assert list(news) == [cursors[2], cursors[0]]
    assert list(others) == cursors, "each reader has its own"
    news.clear()
    cursors[0].settle_fetched()
    assert list(groups.touched) == [cursors[0]] == list(news)
    news.clear()
    cursors[0].settle_fetched()
    groups.sort()
    assert list(news) == [], "it was settled before"


def test_excluded_offsets_that_were_passed_over_are_news() -> None:
    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 20)), excluded=((0, 4),)))
    groups = CursorGroups([cursor])
    news = groups.news()
    news.clear()
    cursor.pass_excluded()
    groups.sort()
    assert list(news) == [cursor], "they are to be settled"


def test_groups_follow_a_receipt_that_ends_and_a_segment_that_ends_after_a_commit() -> None:
    cursor = PartitionCursor(task(Segment(COPIED, 0, 2)))
    groups = CursorGroups([cursor])
    cursor.fetched_to(2, 3)
    cursor.accept(unit(0, 2), 0)
    assert groups.runs == 1
    cursor.receipts("run")
    assert groups.runs == 0
    cursor.confirm()
    assert list(groups.unfinished) == [cursor]
    cursor.settle_fetched()
    assert list(groups.unfinished) == []


def test_a_cursor_that_follows_no_longer_is_news() -> None:
    """Also an idle one: else nobody would settle its last segment, and the lane would not end."""
    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 2)), follows=True))
    groups = CursorGroups([cursor])
    news = groups.news()
    cursor.fetched_to(2, 3)
    cursor.settle_fetched()
    cursor.receipts("run")
    cursor.confirm()
    groups.sort()
    news.clear()
    cursor.end_here(at_once=False)
    groups.sort()
    assert list(news) == list(groups.unfinished) == [cursor]
    cursor.settle_fetched()
    assert (list(groups.unfinished), list(groups.touched)) == ([], [])


def test_groups_follow_a_receipt_that_grows() -> None:
    cursor = PartitionCursor(replace(task(Segment(COPIED, 0, 2)), follows=True))
    groups = CursorGroups([cursor])
    for start in (0, 2):
        cursor.fetched_to(start + 2, 3)
        cursor.accept(unit(start, start + 2), start)
        assert (list(groups.touched), groups.runs) == ([cursor], 1)
        (receipt,) = cursor.receipts("run")
        assert (receipt.upstream_start, receipt.upstream_end, groups.runs) == (0, start + 2, 0)
        cursor.confirm()
        assert (list(groups.touched), list(groups.unfinished)) == ([], [cursor])
