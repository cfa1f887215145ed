"""A cluster's executors come after the job has begun, some only because tasks wait for them: every lane gets a task all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.spark.standalone import standalone

pytestmark = [pytest.mark.spark_drill, pytest.mark.spark]

LANES = 8
# Each lane waits for all others: it succeeds only where all run at the same time.
PROGRAM = """
import json, sys, time
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from ferry.ending import run_and_end
from ferry.copying.lanes import balance
from ferry.spark.executors import task_slots
from ferry.spark.job import run_job, say
from ferry.spark.runner import run_groups

directory, lanes = Path(sys.argv[1]), int(sys.argv[2])

def meet(lanes_of_a_task):
    for lane in lanes_of_a_task:
        (directory / str(lane.number)).touch()
    ends = time.monotonic() + 900
    while (met := len(list(directory.iterdir()))) < lanes and time.monotonic() < ends:
        time.sleep(0.05)
    return [met]

def work(flow, request, context, tasks):
    groups = balance([SimpleNamespace(number=number, weight=1) for number in range(flow.lanes)], tasks)
    results = [met for _, results in run_groups(context, deque(groups), meet, say, width=len(groups)) for met in results]
    print("met", json.dumps(results), "slots", task_slots(context), flush=True)

def main():
    sys.argv[1:] = [sys.argv[3], "--request", "{}"]
    return run_job("width", None, lambda _: SimpleNamespace(flow="A->B", run_id="r"), work, lanes=1)

run_and_end(main)
"""
DYNAMIC = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true"}
TWO_CORES_A_TASK = {"spark.task.cpus": "2", "spark.executor.cores": "4"}
KINDS = {
    "all cores at once": {},
    "dynamic allocation": DYNAMIC,
    "two cores a task": TWO_CORES_A_TASK,
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_lanes_run_at_a_time_where_there_are_cores(kind: str, tmp_path: Path) -> None:
    config = tmp_path / "mm2.properties"
    clusters = [f"{alias}.bootstrap.servers = 127.0.0.1:{port}" for alias, port in (("A", 1), ("B", 2))]
    config.write_text("\n".join(["clusters = A, B", *clusters, "A->B.enabled = true", f"A->B.ferry.lanes = {LANES}", ""]))
    program = tmp_path / "width.py"
    program.write_text(PROGRAM)
    (tmp_path / "met").mkdir()
    # Two executors fit a worker's memory.
    settings = {
        "spark.executor.cores": "2",
        "spark.executor.memory": "480m",
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        "spark.default.parallelism": "3",
        **KINDS[kind],
    }
    with standalone(tmp_path, workers=0) as spark:
        for _ in range(2):
            spark.add_worker(cores=4 * int(settings.get("spark.task.cpus", 1)))
        options = [f"--conf {key}={value}" for key, value in settings.items()]
        environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": " ".join([f"--master {spark.master}", *options, "pyspark-shell"])}
        command = [sys.executable, str(program), str(tmp_path / "met"), str(LANES), str(config)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, [f"met {[LANES] * LANES} slots {LANES}"]), done.stderr[-3000:]
