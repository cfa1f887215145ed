from __future__ import annotations

import math

import pytest
from benchmarks.progress import Progress

pytestmark = pytest.mark.unit


def test_speed_counts_what_came_after_the_first_sight():
    progress = Progress(expected=1_000)
    progress.see_appended(0, 1.0)
    progress.see_appended(100, 2.0)
    progress.see_appended(500, 3.0)
    assert progress.see_committed({("t", 0): 1_001}, 4.0)
    assert (progress.first, progress.first_records, progress.last) == (2.0, 100, 4.0)
    assert progress.records_per_second == 450


def test_the_last_change_counts_not_the_last_sample():
    progress = Progress(expected=10)
    progress.see_committed({("t", 0): 10}, 1.0)
    assert not progress.see_committed({("t", 0): 10}, 2.0)
    assert progress.last == 1.0


def test_markers_alone_may_reach_the_number_so_more_may_follow():
    progress = Progress(expected=10)
    progress.see_committed({("t", 0): 5, ("t", 1): 5}, 1.0)
    assert progress.enough
    assert progress.see_committed({("t", 0): 6, ("t", 1): 6}, 2.0)


def test_no_speed_without_time():
    progress = Progress(expected=10)
    assert math.isnan(progress.records_per_second)
    progress.see_appended(10, 1.0)
    progress.see_committed({("t", 0): 11}, 1.0)
    assert math.isnan(progress.records_per_second)
