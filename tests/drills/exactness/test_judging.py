"""The judge sees what is read twice, left out or out of order, and what Ferry says wrongly; the page keeps the sections of other seeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.drills.exactness.course import Ending
from tests.drills.exactness.findings import find
from tests.drills.exactness.judging import Tally, Verdict, judge, total
from tests.drills.exactness.page import notes, table, write_section
from tests.drills.exactness.places import KINDS, Group, Moment
from tests.drills.exactness.replicators import FERRY, MM2
from tools.kafka import RecordSeen

from ferry.clusters.net.partitions import TopicPartition
from ferry.translation.translated import Inexact, Translation

pytestmark = pytest.mark.unit

ONE, TWO, THREE = (b"1",), (b"2",), (b"3",)
COPIES = [RecordSeen(None, b"%d" % number, (), 0, 10 + number) for number in range(4)]
GROUP = Group("g", KINDS[0].label, Moment.LIVE, TopicPartition("t", 0), 2)
AT_END = {("g", "A.t", 0): 14}


@pytest.mark.parametrize(
    ("wanted", "read", "verdict"),
    [
        ([], [], Verdict(0, 0, True)),
        ([TWO, THREE], [TWO, THREE], Verdict(0, 0, True)),
        ([TWO, THREE], [ONE, TWO, THREE], Verdict(1, 0, False)),
        ([TWO, THREE], [THREE], Verdict(0, 1, False)),
        ([TWO, THREE], [TWO, TWO, THREE], Verdict(1, 0, False)),
        ([TWO, THREE], [THREE, TWO], Verdict(0, 0, False)),
        ([TWO], [], Verdict(0, 1, False)),
        ([TWO, THREE], [ONE, THREE], Verdict(1, 1, False)),
    ],
)
def test_verdicts(wanted: list[tuple[object, ...]], read: list[tuple[object, ...]], verdict: Verdict) -> None:
    assert judge(wanted, read) == verdict


def test_tallies_add_up() -> None:
    first = Tally([Verdict(0, 0, True), Verdict(5, 0, False), Verdict(9, 1, False)], told=2)
    second = Tally([], [(Verdict(7, 0, False), Verdict(0, 3, False))])
    assert (first.positions, first.exact, first.read_again, first.skipped) == (3, 1, (14, 5, 9), 1)
    assert (second.positions, second.read_again, second.reset, second.told) == (1, (0, 0, 0), (7, 3), None)
    both = total([first, second])
    assert (both.positions, both.exact, both.skipped, both.told) == (4, 1, 1, 2)
    assert both.reset == (7, 3)


def ending(translation: Translation | None, checkpoint: int | None) -> Ending:
    """A group that would read the last two of four records next; MM2 sends it to the second."""
    at = ("g", "A.t", 0)
    checkpoints = {FERRY: {} if checkpoint is None else {at: checkpoint}, MM2: {at: 11}}
    copies = {name: {("A.t", 0): COPIES} for name in (FERRY, MM2)}
    wanted, later = [record.content for record in COPIES[2:]], Translation(12)
    return Ending([GROUP], {"g": wanted}, {"g": translation}, checkpoints, copies, {"g": later}, {at: 12}, {("A.t", 0): 14})


@pytest.mark.parametrize(
    ("translation", "checkpoint", "right"),
    [
        (Translation(12), 12, True),
        (Translation(10, Inexact.BACKFILLED), 10, True),
        (Translation(11), 11, False),
        (Translation(13, Inexact.AHEAD), 13, False),
        (Translation(12), 11, False),
        (Translation(12), None, False),
        (None, 12, False),
    ],
    ids=["exact", "told", "not told", "skips", "another checkpoint", "no checkpoint", "no translation"],
)
def test_what_ferry_may_not_say(translation: Translation | None, checkpoint: int | None, *, right: bool) -> None:
    found = find(ending(translation, checkpoint))
    assert (found.problems == []) is right
    assert found.tallies[GROUP.kind][MM2].read_again == (1, 1, 1)
    assert found.exact_later == 1


@pytest.mark.parametrize("later", [Translation(11), Translation(12, Inexact.AHEAD), None])
def test_what_ferry_may_not_say_after_its_last_run(later: Translation | None) -> None:
    before = ending(Translation(12), 12)
    checkpoints = {} if later is None else {("g", "A.t", 0): later.image}
    assert len(find(replace(before, later_translations={"g": later}, later_checkpoints=checkpoints)).problems) == 1


def test_a_consumer_behind_the_end_of_the_log_would_start_anywhere() -> None:
    behind = replace(ending(Translation(15), 15), wanted={"g": []}, later_translations={"g": Translation(14)}, later_checkpoints=AT_END)
    assert len(find(behind).problems) == 1


def test_the_page_keeps_other_seeds(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    found = find(ending(Translation(12), 12))
    for seed in (7, 2, 7):
        write_section(path, seed, [f"run of {seed}", "", *table(found), "", *notes(found)])
    text = path.read_text()
    assert [line for line in text.splitlines() if line.startswith(("## ", "run of"))] == ["## Seed 2", "run of 2", "## Seed 7", "run of 7"]
    assert "\n\n\n" not in text
    assert text.endswith("what was judged.\n")
