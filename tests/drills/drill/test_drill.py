"""Failover and failback under load, with kills: no record lost, none twice on either side, every group resumes exactly.

`make drill SEED=7` plays all combinations; one short course is among the tests.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

import pytest
from tests.both_clusters import both_clusters
from tests.drills.drill.course import Course

pytestmark = [pytest.mark.brokers, pytest.mark.faults]


def seed() -> int:
    given = os.environ.get("FERRY_DRILL_SEED", "")
    return int(given) if given else secrets.randbelow(1 << 31)


def played(directory: Path, policy: str, *, gone: bool, kills: int, seconds: float) -> Course:
    number = seed()
    _say(f"drill: policy {policy}, source {'gone' if gone else 'there'}, seed {number} (FERRY_DRILL_SEED={number})")
    with both_clusters(directory) as (source, target):
        course = Course(source, target, directory, policy, gone=gone, seed=number, kills=kills, seconds=seconds)
        course.play()
    records = {name: sum(map(len, found.values())) for name, found in course.acked.items()}
    _say(f"killed: {', '.join(course.killed) or 'nothing'}; records: {records}")
    return course


def _say(text: str) -> None:
    """Shown with a failure, and by `make drill`."""
    sys.stderr.write(f"{text}\n")


@pytest.mark.long
def test_a_short_course(tmp_path: Path) -> None:
    played(tmp_path, "default", gone=True, kills=1, seconds=1.0)


@pytest.mark.drill
@pytest.mark.parametrize("gone", [True, False], ids=["gone", "there"])
@pytest.mark.parametrize("policy", ["default", "identity"])
def test_a_whole_course(tmp_path: Path, policy: str, gone: bool) -> None:
    assert played(tmp_path, policy, gone=gone, kills=3, seconds=4.0).killed
