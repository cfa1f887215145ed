"""The copy job: the pipeline's copy step with lanes as Spark tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import SparkContext

from ferry.copying.lanes import MOST_LANES
from ferry.copying.request import RunRequest
from ferry.pipeline.run import Run
from ferry.spark.job import run_job, say
from ferry.spark.runner import SparkLaneRunner

if TYPE_CHECKING:
    from ferry.config import Flow
    from ferry.config.connections import Lookup


def main(connections: Lookup | None) -> int:
    """Run one copy job; the exit code by Ferry's table."""
    return run_job("copy_ranges", connections, RunRequest.from_json, _copy, lanes=MOST_LANES)


def _copy(flow: Flow, request: RunRequest, context: SparkContext, tasks: int) -> None:
    with Run(flow, request) as run:
        run.copy(SparkLaneRunner(context, tasks, say), say)
