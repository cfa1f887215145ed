"""The driver side of the copy job: a Spark context around the pipeline's copy step.

Only RDDs are used, so no SQL engine is started. The config file is read here, so secrets reach the workers inside the tasks' closures and
nowhere else.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark import SparkConf, SparkContext

from ferry.config import load_config
from ferry.copying.pipeline import copy_ranges
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode, FerryError
from ferry.spark.connections import connection_lookup
from ferry.spark.installed import without_pandas
from ferry.spark.runner import SparkLaneRunner


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one copy job; the exit code by Ferry's table."""
    parser = argparse.ArgumentParser(prog="copy_ranges", description="Copy offset ranges of one flow as a bounded Spark job.")
    parser.add_argument("config", type=Path)
    parser.add_argument("--request", required=True, help="the run request as JSON")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its reconnects are expected and end in one error of ours
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        _copy(options.config, RunRequest.from_json(options.request))
    except FerryError as problem:
        _say(f"ferry: {type(problem).__name__}: {problem}")
        return int(problem.exit_code)
    return int(ExitCode.DONE)


def _copy(config: Path, request: RunRequest) -> None:
    flow = load_config(config, connections=connection_lookup()).flow(request.flow)
    with without_pandas():
        context = SparkContext(conf=SparkConf().setAppName(f"ferry {flow.name} {request.run_id}"))
    try:
        tasks = flow.tasks_max or context.defaultParallelism
        copy_ranges(flow, request, SparkLaneRunner(context, tasks), _say)
    finally:
        context.stop()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the job's log
