"""What Spark starts a second time by itself does nothing: only the driver of the copy tries lanes again."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

# Two tries a task are allowed here, which Ferry's own settings forbid; lanes of the first attempt would fail for want of a job.
SECOND_ATTEMPT = """
from pyspark import SparkContext, TaskContext
from ferry.spark.runner import run_group

def attempt(rows):
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the first attempt dies")
    return [*run_group(None, ["a lane that no attempt but the first may touch"]), "done"]

context = SparkContext("local[1,2]", "attempts")
print(context.parallelize([0], 1).mapPartitions(attempt).collect())
"""


def test_a_second_attempt_touches_no_lane() -> None:
    done = subprocess.run([sys.executable, "-c", SECOND_ATTEMPT], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["['done']"], done.stderr[-2000:]
