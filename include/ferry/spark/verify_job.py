"""The verify job: Spark tasks compare both sides. It writes the report to the runs topic, where the submitting process reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import SparkContext

from ferry.copying.lanes import FEWEST_LANES
from ferry.spark.job import run_job, say
from ferry.spark.runner import SparkRangeRunner
from ferry.verify.request import VerifyRequest
from ferry.verify.results_topic import write_report
from ferry.verify.verifying import verify

if TYPE_CHECKING:
    from ferry.config import Flow
    from ferry.config.connections import Lookup


def main(connections: Lookup | None) -> int:
    """Run one verify job. The exit code is 0 if there is a report, whatever the report says."""
    return run_job("verify", connections, VerifyRequest.from_json, _verify, lanes=FEWEST_LANES)


def _verify(flow: Flow, request: VerifyRequest, context: SparkContext, tasks: int) -> None:
    write_report(flow, verify(flow, request, SparkRangeRunner(context, tasks, say), say))
