"""What the command line and Airflow tell people about a verify."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.verify.comparison import Difference, DifferenceKind, NotCovered
from ferry.verify.verify_report import VerifyReport

pytestmark = pytest.mark.unit

EQUAL = VerifyReport("A->B", "r", "2026-01-01", "2026-01-02", ranges=2, records=1_000, bytes=2_000, seconds=1.5, cpu_seconds=0.5)


def test_both_sides_are_equal() -> None:
    assert list(EQUAL.lines(5)) == [
        "0 differences, 0 parts not compared",
        "1,000 records, 2,000 bytes compared in 2 ranges, 1.5 s (CPU 0.5 s)",
        "equal",
    ]
    assert list(replace(EQUAL, records=0).lines(5))[-1] == "nothing to compare"


def test_a_long_list_is_cut_short_and_says_so() -> None:
    differences = tuple(Difference("t", 0, "A.t", -1, offset, DifferenceKind.EXTRA, "why") for offset in range(3))
    report = replace(EQUAL, counts={"extra": 2_000}, differences=differences, not_covered=(NotCovered("t", 1, 0, 9, "not copied yet"),))
    assert list(report.lines(2))[:-1] == [
        "not compared: t-1 source offsets 0 to 8: not copied yet",
        "t-0 downstream 0: extra: why",
        "t-0 downstream 1: extra: why",
        "… and 1,998 more",
        "2,000 differences, 1 part not compared",
    ]
