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


@dag(schedule=[REFRESHED], start_date=datetime(2024, 1, 1, tzinfo=UTC), catchup=False, is_paused_upon_creation=True, max_active_runs=1)
def process_refreshed() -> None:
    """Counts the refreshed records of each key."""

    @task
    def what_was_copied(triggering_asset_events: Any = None) -> str:
        # One run of this DAG may answer several runs of the flow: each event holds the facts of one.
        return json.dumps([event.extra for event in triggering_asset_events[REFRESHED]])

    count_refreshed = SparkSubmitOperator(
        task_id="count_refreshed",
        application=str(Path(__file__).with_name("count_refreshed.py")),
        application_args=[SERVERS, OUTPUT, "{{ ti.xcom_pull(task_ids='what_was_copied') }}"],
    )
    what_was_copied() >> count_refreshed


process_refreshed()
