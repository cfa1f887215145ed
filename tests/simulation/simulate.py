"""`make simulate SEEDS=1000 SEED=0`: plays many seeds. Of each one that fails it prints the problems and the trace of a smaller scenario.

A seed always gives the same, in any process, so `make simulate SEED=271 SEEDS=1` repeats it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path

from tests.simulation.playing import Outcome, play
from tests.simulation.scenario import Scenario, drawn
from tests.simulation.shrinking import kind_of, shrunk

# Seeds that a process plays between two reports.
CHUNK = 20
TRACES = Path(__file__).parents[2] / ".ferry" / "simulation"


def failing(seeds: Iterable[int]) -> list[tuple[int, list[str]]]:
    """The seeds that fail, each with what does not hold."""
    outcomes = ((seed, play(drawn(seed)).problems) for seed in seeds)
    return [(seed, problems) for seed, problems in outcomes if problems]


def smaller(scenario: Scenario, problems: list[str]) -> Outcome:
    """The outcome of the smallest scenario found that fails in the same way."""
    kind = kind_of(problems[0])
    return play(shrunk(scenario, lambda one: kind in map(kind_of, play(one).problems)))


def story(outcome: Outcome) -> str:
    """What a person reads: the scenario, what does not hold, and everything that happened."""
    return "\n".join(
        [str(outcome.scenario), *(f"  DOES NOT HOLD: {problem}" for problem in outcome.problems), "", *outcome.world.lines(), ""]
    )


def tell(seed: int, problems: list[str]) -> None:
    """Print a seed that fails, and write its trace."""
    print(f"seed {seed}: {'; '.join(problems[:3])}")
    outcome = smaller(drawn(seed), problems)
    TRACES.mkdir(parents=True, exist_ok=True)
    path = TRACES / f"seed-{seed}.txt"
    path.write_text(story(outcome), encoding="utf-8")
    print(f"{outcome.scenario}\n  the trace is in {path}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.simulate", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1_000, help="how many")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--trace", action="store_true", help="print the trace of the first seed, whether it fails or not")
    options = parser.parse_args()
    if options.trace:
        print(story(play(drawn(options.seed))))
        return 0
    began = time.monotonic()
    chunks = [
        range(first, min(first + CHUNK, options.seed + options.seeds)) for first in range(options.seed, options.seed + options.seeds, CHUNK)
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        found = list(chain.from_iterable(pool.map(failing, chunks)))
    for seed, problems in found:
        tell(seed, problems)
    seconds = time.monotonic() - began
    print(f"{options.seeds} seeds, {len(found)} failed, {seconds:.0f} s, {3_600 * options.seeds / seconds:,.0f} seeds an hour")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
