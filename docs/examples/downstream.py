"""An example DAG: starts when a remote topic was refreshed, and processes just what was copied, with PySpark.

Put both files of this directory into your DAGs folder, name your topic's asset and your cluster, and unpause the DAG.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset, dag, task

REFRESHED = Asset(os.environ.get("REFRESHED_ASSET", "ferry://B/topics/A.orders"))
SERVERS = os.environ.get("REFRESHED_SERVERS", "b.example:9092")
OUTPUT = os.environ.get("REFRESHED_OUTPUT", "/var/lib/reports")
# One argument of a command may have 128 KiB on Linux; an event has 16 at most.
CHARACTERS_A_JOB = 100_000


def bounded(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The events in groups that fit a command line each."""
    groups: list[list[dict[str, Any]]] = []
    size = CHARACTERS_A_JOB
    for event in events:
        length = len(json.dumps(event)) + 2
        if size + length > CHARACTERS_A_JOB:
            groups.append([])
            size = 0
        groups[-1].append(event)
        size += length
    return groups


@dag(schedule=[REFRESHED], start_date=datetime(2024, 1, 1, tzinfo=UTC), catchup=False, is_paused_upon_creation=True, max_active_runs=1)
def process_refreshed() -> None:
    """Counts the refreshed records of each key."""

    @task
    def what_was_copied(triggering_asset_events: Any = None) -> list[list[str]]:
        # One run of this DAG may answer several runs of the flow: each event holds the facts of one.
        events = [event.extra for event in triggering_asset_events[REFRESHED]]
        return [[SERVERS, OUTPUT, json.dumps(some)] for some in bounded(events)]

    count_refreshed = SparkSubmitOperator.partial(
        task_id="count_refreshed", application=str(Path(__file__).with_name("count_refreshed.py"))
    )
    count_refreshed.expand(application_args=what_was_copied())


process_refreshed()
