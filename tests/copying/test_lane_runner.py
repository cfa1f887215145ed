"""How many lanes run side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.copying.feed_bench import task

from ferry.clusters.coordination import ProducerIdentity
from ferry.copying.lane_runner import FAR_SECONDS, LANES_BESIDE, lanes_beside
from ferry.copying.model import LaneTask

pytestmark = pytest.mark.unit

MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("round_trip", "lanes", "memory", "batch_limit", "beside"),
    [
        (0.0, 8, 512, 1, 1),  # not known
        (FAR_SECONDS * 0.99, 8, 512, 1, 1),
        (FAR_SECONDS, 20, 512, 1, LANES_BESIDE),
        (0.1, 3, 512, 1, 3),
        (0.1, 8, 128, 4, 2),  # large batches
        (0.1, 8, 128, 100, 1),
        (0.1, 1, 128, 1, 1),
    ],
)
def test_lanes_run_side_by_side_only_over_a_distance(round_trip: float, lanes: int, memory: int, batch_limit: int, beside: int) -> None:
    partition = replace(task(), batch_limit=batch_limit * MEBIBYTE)
    tasks = [LaneTask(number, f"lane-{number}", ProducerIdentity(1, 0), (partition,)) for number in range(lanes)]
    assert lanes_beside(memory * MEBIBYTE, tasks, round_trip) == beside
