"""How many tasks can run at a time, as Spark says: by cores, and by how many of them a task takes. Not by spark.default.parallelism."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

ASK = """
from pyspark import SparkConf, SparkContext
from ferry.spark.executors import executors, task_slots
from ferry.spark.job import most_tasks
from ferry.spark.runner import SparkLaneRunner

settings = {"spark.task.cpus": "2", "spark.default.parallelism": "64", "spark.ui.enabled": "false"}
context = SparkContext("local[6]", "slots", conf=SparkConf().setAll(settings.items()))
runner = SparkLaneRunner(context, 64, print)
print(executors(context), task_slots(context), most_tasks(context, 64), runner.width, runner.has_room(2), runner.has_room(3))
"""


def test_cores_count_and_how_many_a_task_takes() -> None:
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["0 3 3 3 True False"], done.stderr[-2000:]
