"""Runs groups of work as Spark tasks. Each group is a Spark job of its own, in one application.

So a worker that is killed fails only its group, and the others keep their results. The caller sees which groups have no result, and decides
what to try again; Spark does not.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

from pyspark import SparkContext

from ferry.spark.executors import ExecutorWatch

Item = TypeVar("Item")
Result = TypeVar("Result")

Work = Callable[[Sequence[Item]], Iterable[Result]]


def run_groups(
    context: SparkContext, groups: deque[list[Item]], work: Work[Item, Result], say: Callable[[str], None], *, width: int
) -> Generator[tuple[list[Item], list[Result] | str]]:
    """Yields each group as it finishes, with its results, or with one line why it has none. At most `width` groups run at a time.

    Groups are removed from `groups`; groups that are added between two results run too. `work` is pickled, and runs in a Spark worker.
    `say` prints what the job waits for. NoExecutors if there is no executor for too long.
    """
    if not groups:
        return
    with ExecutorWatch(context, len(groups), say) as watch, ThreadPoolExecutor(width, thread_name_prefix="ferry-group") as pool:
        running: dict[Future[list[Result]], list[Item]] = {}
        while groups or running:
            while groups and len(running) < width:
                group = groups.popleft()
                running[pool.submit(_run_group, context, work, group)] = group
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                group, problem = running.pop(future), future.exception()
                watch.check()
                yield group, future.result() if problem is None else _first_line(problem)


def _run_group(context: SparkContext, work: Work[Item, Result], group: list[Item]) -> list[Result]:
    results: list[Result] = context.parallelize([0], 1).mapPartitions(partial(_in_worker, work, group)).collect()
    return results


def _in_worker(work: Work[Item, Result], group: Sequence[Item], _: Iterable[int]) -> Iterator[Result]:
    """What a Spark worker executes."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its reconnects are expected and end in one error of ours
    yield from work(group)


def _first_line(problem: BaseException) -> str:
    lines = [line for line in str(problem).splitlines() if line.strip()]
    telling = [line for line in lines if "SparkException" in line or "Error" in line]
    return (telling or lines or [type(problem).__name__])[0].strip()
