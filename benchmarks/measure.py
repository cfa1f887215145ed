"""One timed run of one copier: start it, watch the remote topics, stop it, count what arrived."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.counting import count_records
from benchmarks.process_tree import Cost, ProcessTree
from benchmarks.progress import CopyFailed, Progress, watch
from benchmarks.topics import Partition

# MM2 never ends by itself: it has caught up when nothing came for this long. Longer than its slowest poll-to-commit cycle.
SETTLE_SECONDS = 3.0
# After a copier's records have all arrived it finishes its syncs; one that takes longer hangs.
EXIT_SECONDS = 120.0


@dataclass(frozen=True)
class Sample:
    """What one run showed. Seconds are wall time from the start of the process, except those of the CPU."""

    records: int
    records_per_second: float
    first_seconds: float
    caught_up_seconds: float
    exit_seconds: float | None
    cpu_seconds: float
    peak_mib: float
    worker_peak_mib: float


@dataclass(frozen=True)
class Job:
    """A copier's command and where its records must arrive; `ends` says whether the command ends by itself."""

    command: list[str]
    log: Path
    target: str
    partitions: list[Partition]
    ends: bool
    environment: Mapping[str, str] | None = None


def measure(job: Job, records: int) -> Sample:
    """Run it once: `records` must arrive. CopyFailed names the log when the copier failed, got stuck, or copied another number."""
    tree = ProcessTree(job.command, job.log, job.environment)
    costs: list[Cost] = []
    exit_seconds = None
    try:
        progress = watch(
            job.target,
            job.partitions,
            records,
            running=lambda: tree.running,
            on_change=lambda: costs.append(tree.cost()),
            settle=EXIT_SECONDS if job.ends else SETTLE_SECONDS,
        )
        if job.ends:
            exit_seconds = _wait_for_exit(tree)
    except CopyFailed as failure:
        raise CopyFailed(f"{failure}; see {job.log}") from failure
    finally:
        tree.finish()
    _check_count(job, progress, records)
    # What MM2 costs after it caught up is not held against it; a run of Ferry costs what it costs until its end.
    return _sample(tree, progress, tree.cost() if job.ends else costs[-1], exit_seconds)


def _wait_for_exit(tree: ProcessTree) -> float:
    _until(lambda: not tree.running, EXIT_SECONDS)
    seconds = time.perf_counter() - tree.started
    if tree.exit_code != 0:
        raise CopyFailed(f"the copier ended with {tree.exit_code}")
    return seconds


def _until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise CopyFailed(f"the copier did not end within {seconds:.0f} s")
        time.sleep(0.01)


def _check_count(job: Job, progress: Progress, records: int) -> None:
    found = count_records(job.target, progress.ends)
    if found != records:
        raise CopyFailed(f"{found} records arrived, {records} are there; see {job.log}")


def _sample(tree: ProcessTree, progress: Progress, cost: Cost, exit_seconds: float | None) -> Sample:
    if progress.first is None or progress.last is None:
        raise CopyFailed("nothing was copied")
    return Sample(
        records=progress.expected,
        records_per_second=progress.records_per_second,
        first_seconds=progress.first - tree.started,
        caught_up_seconds=progress.last - tree.started,
        exit_seconds=exit_seconds,
        cpu_seconds=cost.cpu_seconds,
        peak_mib=cost.peak_bytes / 2**20,
        worker_peak_mib=cost.worker_peak_bytes / 2**20,
    )
