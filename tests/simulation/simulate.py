"""`make simulate SEEDS=1000 SEED=0`: plays many seeds. Of each one that fails it prints the problems and the trace of a smaller scenario.

A seed always gives the same, in any process, so `make simulate SEED=271 SEEDS=1` repeats it.
"""

from __future__ import annotations

import argparse
import gc
import logging
import resource
import signal
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tests.simulation.ferry_in_a_world import SILENT
from tests.simulation.playing import Outcome, play
from tests.simulation.scenario import Scenario
from tests.simulation.shrinking import kind_of, shrunk
from tests.simulation.themes import drawn
from tests.simulation.virtual_time import classes_changed

# Seeds that a process plays between two reports.
CHUNK = 20
# Seconds between two lines that say how far a series is.
TELLING = 60.0
TRACES = Path(__file__).parents[2] / ".ferry" / "simulation"


def failing(seeds: Iterable[int]) -> list[tuple[int, list[str]]]:
    """The seeds that fail, each with what does not hold."""
    found = []
    with classes_changed():
        for seed in seeds:
            outcome = play(drawn(seed))
            if outcome.problems:
                found.append((seed, outcome.problems))
            outcome.world.forget()
    return found


def _begin() -> None:
    """Of a process that plays many seeds: it looks for garbage only after each chunk, and never at what is loaded now."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the process that has begun it ends it
    logging.getLogger("kafka").setLevel(SILENT)
    gc.disable()
    gc.freeze()


def _play_chunk(seeds: range) -> list[tuple[int, list[str]]]:
    found = failing(seeds)
    gc.collect()
    return found


class Series:
    """Many seeds, played by several processes. `played`: how many of them, from the first one on."""

    def __init__(self, seeds: range) -> None:
        self.seeds, self.played = seeds, 0
        self.found: list[tuple[int, list[str]]] = []
        self._began = self._told = time.monotonic()

    def play(self, jobs: int) -> None:
        """Until all are played, or a signal comes. Tells of each seed that fails, and now and then how far it is."""
        chunks = [self.seeds[place : place + CHUNK] for place in range(0, len(self.seeds), CHUNK)]
        pool = ProcessPoolExecutor(jobs, initializer=_begin)
        try:
            for chunk, found in zip(chunks, pool.map(_play_chunk, chunks), strict=True):
                self.played += len(chunk)
                self.found += found
                for seed, problems in found:
                    print(f"seed {seed}: {'; '.join(problems[:3])}", flush=True)
                if time.monotonic() - self._told >= TELLING:
                    self._told = time.monotonic()
                    print(f"{self}, the next one is {self.seeds[0] + self.played}", flush=True)
        except (KeyboardInterrupt, BrokenProcessPool):
            print(f"stopped; to go on: SEED={self.seeds[0] + self.played}", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)

    def __str__(self) -> str:
        rate = self.played / max(time.monotonic() - self._began, 1e-9)
        return f"{self.played} of {len(self.seeds)} seeds, {len(self.found)} failed, {rate:.1f} seeds a second"


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
    """Make a seed that fails smaller, print it, and write its trace."""
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
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    series = Series(range(options.seed, options.seed + options.seeds))
    series.play(options.jobs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{series}, {(used.ru_utime + used.ru_stime) / max(series.played, 1):.3f} s of CPU a seed", flush=True)
    if series.played == len(series.seeds):
        for seed, problems in series.found:
            tell(seed, problems)
    return 1 if series.found or series.played < len(series.seeds) else 0


if __name__ == "__main__":
    sys.exit(main())
