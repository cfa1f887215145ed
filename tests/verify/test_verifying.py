"""What a verify says while it compares."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ferry.verify import verifying
from ferry.verify.comparison import RangeResult

pytestmark = pytest.mark.unit

RANGES: Any = [
    SimpleNamespace(identity=f"{topic}{number}", key=(topic, 0), upstream=(number * 100, number * 100 + 100))
    for topic in ("clicks", "orders")
    for number in range(2)
]
RESULTS = [RangeResult(entry.identity, *entry.key, records=90, bytes=5_000) for entry in RANGES]


def test_it_says_how_much_is_compared_and_passes_the_results_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "INTERVAL_SECONDS", -1.0)
    said: list[str] = []
    told = verifying._told(iter(RESULTS), RANGES, said.append)
    assert next(told) is RESULTS[0]
    assert said == ["100 of 400 records (25%), time left: not known yet; most left: orders-0 (200), clicks-0 (100)"]
    assert list(told) == RESULTS[1:]
    assert said[-1].startswith("400 of 400 records (100%)")


def test_a_short_one_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "INTERVAL_SECONDS", 3_600.0)
    said: list[str] = []
    assert list(verifying._told(iter(RESULTS), RANGES, said.append)) == RESULTS
    assert said == []
