"""The driver side of Ferry's Spark jobs: arguments, the config file, a Spark context around the work, errors as exit codes.

Only RDDs are used, so no SQL engine is started. The config file is read here, so secrets reach the workers inside the tasks' closures and
nowhere else.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from pyspark import SparkConf, SparkContext

from ferry.config import load_config
from ferry.copying.slow_steps import named_when_slow
from ferry.errors import ExitCode, FerryError
from ferry.spark.installed import without_pandas

if TYPE_CHECKING:
    from ferry.config import Flow
    from ferry.config.connections import Lookup


class Request(Protocol):
    """What a job is asked to do."""

    @property
    def flow(self) -> str: ...

    @property
    def run_id(self) -> str: ...


R = TypeVar("R", bound=Request)


def run_job(
    name: str, connections: Lookup | None, read: Callable[[str], R], work: Callable[[Flow, R, SparkContext, int], None], *, lanes: int
) -> int:
    """One job: `read` makes the request of its JSON, `work` gets flow, request, context and the number of tasks. The exit code.

    `connections` finds Airflow connections, where there is an Airflow. `lanes`: how many the flow is taken to have at most, where it does
    not say it.
    """
    parser = argparse.ArgumentParser(prog=name, description="A bounded Spark job of one flow.")
    parser.add_argument("config", type=Path)
    parser.add_argument("--request", required=True, help="the request as JSON")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its reconnects are expected and end in one error of ours
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        request = read(options.request)
        flow = load_config(options.config, connections=connections).flow(request.flow)
        with without_pandas():
            settings = SparkConf().setAppName(f"ferry {flow.name} {request.run_id}")
            with named_when_slow(say, f"waiting for Spark to start on {settings.get('spark.master')}"):
                context = SparkContext(conf=settings)
        try:
            work(flow, request, context, flow.tasks_max or most_tasks(context, flow.lanes or lanes))
        finally:
            context.stop()
    except FerryError as problem:
        say(f"ferry: {type(problem).__name__}: {problem}")
        return int(problem.exit_code)
    return int(ExitCode.DONE)


def most_tasks(context: SparkContext, lanes: int) -> int:
    """How many tasks there may be at a time where the flow does not say it.

    The cores of a local master are known. Those of a cluster are not: executors come later, and with dynamic allocation they come because
    tasks wait for them. So there every lane may be a task of its own.
    """
    return int(context.defaultParallelism) if (context.master or "").startswith("local") else lanes


def say(text: str) -> None:
    """One line of the job's log."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the job's log
