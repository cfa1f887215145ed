"""Runs lanes as Spark tasks, one job per group of lanes.

The groups are separate jobs of one application: a worker that is killed fails its own job, and the lanes of the other groups keep their
results. Lanes of a failed job simply have no result; the driver of the copy takes them back and tries them again.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial

from pyspark import SparkContext

from ferry.copying.lane_runner import run_lanes
from ferry.copying.lanes import balance
from ferry.copying.model import CopyJob, LaneResult, LaneTask

log = logging.getLogger(__name__)


class SparkLaneRunner:
    """Spreads lanes over at most `tasks` Spark tasks."""

    def __init__(self, context: SparkContext, tasks: int) -> None:
        self._context = context
        self._tasks = tasks

    def run(self, job: CopyJob, tasks: Sequence[LaneTask]) -> Iterator[LaneResult]:
        """Results as groups finish; lanes of groups that failed have none."""
        groups = balance(tasks, self._tasks)
        if not groups:
            return
        if job.bytes_per_second is not None:  # what a task does not use is not given to another one, so the sum is never above the budget
            job = replace(job, bytes_per_second=job.bytes_per_second / len(groups))
        with ThreadPoolExecutor(len(groups), thread_name_prefix="ferry-group") as pool:
            waiting = {pool.submit(self._run_group, job, group): group for group in groups}
            for future in as_completed(waiting):
                problem = future.exception()
                if problem is None:
                    yield from future.result()
                else:
                    lanes = ", ".join(str(task.lane) for task in waiting[future])
                    log.warning("the Spark task of lanes %s failed: %s", lanes, _first_line(problem))

    def _run_group(self, job: CopyJob, group: list[LaneTask]) -> list[LaneResult]:
        results: list[LaneResult] = self._context.parallelize([0], 1).mapPartitions(partial(run_group, job, group)).collect()
        return results


def run_group(job: CopyJob, group: Sequence[LaneTask], _: Iterable[int]) -> Iterator[LaneResult]:
    """What a Spark worker executes: some lanes, one after the other."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its reconnects are expected and end in one error of ours
    return run_lanes(job, group)


def _first_line(problem: BaseException) -> str:
    lines = [line for line in str(problem).splitlines() if line.strip()]
    telling = [line for line in lines if "SparkException" in line or "Error" in line]
    return (telling or lines or [type(problem).__name__])[0].strip()
