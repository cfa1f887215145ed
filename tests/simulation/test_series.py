"""A series of seeds says how far it is, and after a signal with which seed to go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.simulation import simulate
from tests.simulation.simulate import CHUNK, Series

pytestmark = pytest.mark.unit


class Pool:
    """Plays in this process. Seed 30 fails; before seed 60 there is a signal."""

    def __init__(self, *_: object, **__: object) -> None:
        self.closed = False

    def map(self, _: object, chunks: list[range]) -> Iterator[list[Any]]:
        for chunk in chunks:
            if 60 in chunk:
                raise KeyboardInterrupt
            yield [(30, ["a record is lost"])] if 30 in chunk else []

    def shutdown(self, **_: object) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "ProcessPoolExecutor", Pool)


def test_a_series_tells_of_failures_at_once_and_how_far_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "TELLING", 0.0)
    series = Series(range(10, 55))
    series.play(1)
    first, second, *others = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{CHUNK} of 45 seeds, 0 failed, ")
    assert first.endswith("the next one is 30")
    assert second == "seed 30: a record is lost"
    assert [line.partition(" seeds")[0] for line in others] == ["40 of 45", "45 of 45"]


def test_a_series_that_is_stopped_says_where_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    series = Series(range(100))
    series.play(1)
    assert (series.played, series.found) == (60, [(30, ["a record is lost"])])
    assert capsys.readouterr().out.splitlines()[-1] == "stopped; to go on: SEED=60"
