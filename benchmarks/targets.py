"""What the benchmark is expected to show, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.results import FERRY, ShapeResult
from benchmarks.shapes import BACKLOG_MEGABYTES, BATCHED_MEGABYTES

TIMES_FASTER = {"100b-lz4": 8.0, "1kb-lz4": 4.0, "10kb-zstd": 5.0, "1kb-none": 3.0, "100b-ten": 3.0, "100b-one": 2.0}
LARGEST_CPU_SHARE = 0.25
SMALLEST_LIMIT_SHARE = 0.75
LARGEST_WALL_SHARE = 1.0
LARGEST_WALL_SHARE_SMALL = 1.3
LARGEST_WORKER_MIB = 400.0


@dataclass(frozen=True)
class Target:
    """One expectation: `found` must be at least (or, with `at_most`, at most) `wanted`."""

    shape: str
    what: str
    found: float
    wanted: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.found <= self.wanted if self.at_most else self.found >= self.wanted


def judge(result: ShapeResult) -> list[Target]:
    """The expectations that this shape and this amount can tell about."""
    shape = result.shape
    full = shape.megabytes >= BATCHED_MEGABYTES
    candidates = [
        ("times tuned MM2's records/s", result.times_faster(), TIMES_FASTER.get(shape.name), False),
        ("share of the produce-only limit", result.limit_share(), SMALLEST_LIMIT_SHARE if shape.batched and full else None, False),
        ("share of tuned MM2's CPU", result.cpu_share(), LARGEST_CPU_SHARE if _backlog(result) else None, True),
        ("start to caught up, times tuned MM2's", result.wall_share(), LARGEST_WALL_SHARE if full else LARGEST_WALL_SHARE_SMALL, True),
        ("MiB of the largest Spark Python worker", _worker_mib(result), LARGEST_WORKER_MIB, True),
    ]
    return [
        Target(shape.name, what, found, wanted, at_most)
        for what, found, wanted, at_most in candidates
        if found is not None and wanted is not None
    ]


def _backlog(result: ShapeResult) -> bool:
    return result.shape.batched and result.shape.megabytes >= BACKLOG_MEGABYTES


def _worker_mib(result: ShapeResult) -> float | None:
    samples = result.samples.get(FERRY)
    return max((sample.worker_peak_mib for sample in samples or ()), default=0.0) or None
