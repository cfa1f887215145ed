"""The copy job: the pipeline's copy step with lanes as Spark tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark import SparkContext

from ferry.copying.lanes import MOST_LANES
from ferry.copying.pipeline import copy_ranges
from ferry.copying.request import RunRequest
from ferry.spark.job import run_job, say
from ferry.spark.runner import SparkLaneRunner

if TYPE_CHECKING:
    from ferry.config import Flow


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one copy job; the exit code by Ferry's table."""
    return run_job("copy_ranges", arguments, RunRequest.from_json, _copy, lanes=MOST_LANES)


def _copy(flow: Flow, request: RunRequest, context: SparkContext, tasks: int) -> None:
    copy_ranges(flow, request, SparkLaneRunner(context, tasks, say), say)
