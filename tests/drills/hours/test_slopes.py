"""The line through a figure: what grows is found among noise, what does not grow is not."""

from __future__ import annotations

import random

import pytest
from tests.drills.hours.slopes import Sample, decoded, encoded, lines

pytestmark = pytest.mark.unit


def samples(level: float, slope: float, pieces: int = 3, each: int = 30, *, anew: bool = False) -> list[Sample]:
    """A figure with noise of 5 % and every tenth sample doubled; it warms up over the first tenth. `anew`: each piece begins at `level`."""
    chance = random.Random(7)
    found = []
    for piece in range(pieces):
        for number in range(each):
            hours = (piece * each + number) / each
            since = number / each if anew else hours
            warm = min(1.0, 0.3 + since * 7)
            value = (level + slope * since) * warm * chance.uniform(0.95, 1.05) * (2 if number % 10 == 9 else 1)
            found.append(Sample(piece, hours, {"MiB": value}))
    return found


@pytest.mark.parametrize("slope", [0.0, 0.5, -3.0])
def test_noise_and_a_warm_up_are_no_growth(slope: float) -> None:
    (line,) = lines(samples(100.0, slope), ())
    assert not line.grows


@pytest.mark.parametrize("slope", [10.0, 40.0])
def test_growth_is_found(slope: float) -> None:
    (line,) = lines(samples(100.0, slope), ())
    assert line.grows
    assert line.growth == pytest.approx(slope * 2.25, rel=0.4)


def test_a_process_that_each_piece_starts_anew_is_judged_within_pieces() -> None:
    leaking = samples(100.0, 60.0, anew=True)
    assert lines(leaking, ["MiB"])[0].grows
    assert not lines(samples(100.0, 0.0, anew=True), ["MiB"])[0].grows


def test_samples_are_kept_as_lines() -> None:
    kept = samples(1.0, 1.0)
    assert decoded(encoded(sample) for sample in kept) == kept
