"""The verify job: both sides compared by Spark tasks; the report goes to the runs topic, where whoever submitted it finds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark import SparkContext

from ferry.copying.lanes import FEWEST_LANES
from ferry.proving.request import VerifyRequest
from ferry.proving.results_topic import write_report
from ferry.proving.verifying import verify
from ferry.spark.job import run_job, say
from ferry.spark.runner import SparkRangeRunner

if TYPE_CHECKING:
    from ferry.config import Flow


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verify job. The exit code is not 0 where there is no report; what the report says is for its reader."""
    return run_job("verify", arguments, VerifyRequest.from_json, _verify, lanes=FEWEST_LANES)


def _verify(flow: Flow, request: VerifyRequest, context: SparkContext, tasks: int) -> None:
    write_report(flow, verify(flow, request, SparkRangeRunner(context, tasks, say), say))
