"""The one Airflow of all situations: its DAGs are those of the flow that is played.

A task is tried again once, and at once: on a busy machine a task's process may die.
"""

from __future__ import annotations

import os
from pathlib import Path

from demo.airflow_api import AirflowApi
from demo.airflow_services import ROOT, DemoAirflow
from tests.waiting import until

from ferry.airflow.flows import TAG

DAG_FILE = """\
from datetime import timedelta

from ferry.airflow.dags import flows

flows(default_args={"retries": 1, "retry_delay": timedelta(seconds=1), "retry_exponential_backoff": False})
"""


class SituationsAirflow(DemoAirflow):
    """`show` changes the flow: FERRY_CONFIG names the same file all the time."""

    @property
    def dags(self) -> Path:
        return self._home / "dags"

    def environment(self) -> dict[str, str]:
        self.dags.mkdir(parents=True, exist_ok=True)
        if not (self.dags / "flows.py").exists():
            (self.dags / "flows.py").write_text(DAG_FILE, encoding="utf-8")
        paths = os.pathsep.join([str(ROOT / "include"), str(ROOT)])  # callbacks are in the tests
        return {**super().environment(), "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags), "PYTHONPATH": paths}

    def show(self, api: AirflowApi, dag: str) -> None:
        """Have Airflow read the file anew; returns when it has this DAG, and no DAG of another flow."""
        (self.dags / "flows.py").touch()
        api.wait_for_dag(dag)
        until(lambda: self._forget_others(api, dag), lambda: "Airflow keeps DAGs of other flows")

    def _forget_others(self, api: AirflowApi, dag: str) -> bool:
        known = [found["dag_id"] for found in api._call("GET", f"/dags?tags={TAG}&limit=100")["dags"]]
        others = [name for name in known if name != dag and not name.startswith(f"{dag}.")]
        for name in others:
            api._client.request("DELETE", f"/dags/{name}")
        return not others
