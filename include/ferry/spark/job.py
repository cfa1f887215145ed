"""The driver side of Ferry's Spark jobs, copy and verify: arguments, config file, the start of Spark, errors as exit codes.

Ferry uses only RDDs, so Spark starts no SQL engine. The driver reads the config file; secrets reach the workers only inside the tasks'
closures.
"""

import argparse
import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from pyspark import SparkConf, SparkContext

from ferry.config import Flow, load_config
from ferry.config.connections import Lookup
from ferry.copying.lanes import FEWEST_LANES, MOST_LANES
from ferry.copying.progress import named_when_slow
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode, FerryError
from ferry.ledger.open_flow import open_flow
from ferry.pipeline.run import open_run
from ferry.spark.executors import task_slots
from ferry.spark.installed import without_pandas
from ferry.spark.runner import SparkLaneRunner, run_ranges
from ferry.verify.request import VerifyRequest
from ferry.verify.results_topic import write_report
from ferry.verify.verifying import verify

R = TypeVar("R", RunRequest, VerifyRequest)


def copy_main(connections: Lookup | None) -> int:
    """Run one copy job, with lanes as Spark tasks. Returns the exit code."""

    def work(flow: Flow, request: RunRequest, context: SparkContext, tasks: int) -> None:
        with open_run(flow, request) as run:
            run.copy(SparkLaneRunner(context, tasks, say), say)

    return run_job("copy_ranges", connections, RunRequest.from_json, work, lanes=MOST_LANES)


def verify_main(connections: Lookup | None) -> int:
    """Run one verify job, with ranges as Spark tasks. Returns the exit code: 0 if there is a report in the runs topic, whatever it says."""

    def work(flow: Flow, request: VerifyRequest, context: SparkContext, tasks: int) -> None:
        with open_flow(flow) as opened:
            write_report(opened, verify(opened, request, partial(run_ranges, context=context, tasks=tasks, say=say), say))

    return run_job("verify", connections, VerifyRequest.from_json, work, lanes=FEWEST_LANES)


def run_job(
    name: str, connections: Lookup | None, read: Callable[[str], R], work: Callable[[Flow, R, SparkContext, int], None], *, lanes: int
) -> int:
    """Run one job; returns the exit code. `read` decodes the request; `work` gets flow, request, context and the number of tasks.

    `connections` finds Airflow connections, if there is an Airflow. `lanes`: the largest number of lanes of a flow that does not set it.
    """
    parser = argparse.ArgumentParser(prog=name, description="A bounded Spark job of one flow.")
    parser.add_argument("config", type=Path)
    parser.add_argument("--request", required=True, help="the request as JSON")
    options = parser.parse_args()
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        request = read(options.request)
        flow = load_config(options.config, connections=connections).flow(request.flow)
        with without_pandas():
            settings = SparkConf().setAppName(f"ferry {flow.name} {request.run_id}")
            master = settings.get("spark.master")  # an external spark-submit may have set it otherwise
            with named_when_slow(say, f"waiting for Spark to start on {master}" if master else "waiting for Spark to start"):
                context = SparkContext(conf=settings)
        with context:
            work(flow, request, context, flow.tasks_max or most_tasks(context, flow.lanes or lanes))
    except FerryError as problem:
        say(f"ferry: {type(problem).__name__}: {problem}")
        return int(problem.exit_code)
    return int(ExitCode.DONE)


def most_tasks(context: SparkContext, lanes: int) -> int:
    """The largest number of tasks at a time, for a flow that does not set it.

    A local master's cores are known. A cluster's are not: executors come later, and with dynamic allocation only if tasks wait for them. So
    there every lane may be a task of its own.
    """
    return max(1, task_slots(context)) if (context.master or "").startswith("local") else lanes


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the job's log
