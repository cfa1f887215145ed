"""The few calls of Airflow's REST API that the demo makes."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from ferry.errors import FerryError

# A machine that is busy with everything else that the demo starts; longer than the API server waits for its database.
REQUEST_SECONDS = 120.0
# The DAG processor reads the file every few seconds; a loaded machine may need many times that.
DAG_SECONDS = 900.0
# The demo's database is SQLite, which refuses a backfill while the scheduler writes; it asks to try again.
LOCKED_SECONDS = 30.0
POLL_SECONDS = 0.5
FINISHED = frozenset({"success", "failed"})


class ApiFailed(FerryError):
    """Airflow's API answered otherwise than expected."""


@dataclass(frozen=True)
class RunState:
    """A DAG run and the states of its tasks, in the order in which they run."""

    run_id: str
    state: str
    tasks: dict[str, str]

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in FINISHED


class AirflowApi:
    """A logged-in client; its connections are closed at the end of its `with`."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self.url = url
        with httpx.Client(timeout=REQUEST_SECONDS, trust_env=False) as client:
            answer = client.post(f"{url}/auth/token", json={"username": user, "password": password})
        if answer.status_code >= httpx.codes.BAD_REQUEST:
            raise ApiFailed(f"Airflow at {url} refuses the demo's login: {answer.status_code}")
        headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        self._client = httpx.Client(base_url=f"{url}/api/v2", timeout=REQUEST_SECONDS, trust_env=False, headers=headers)

    def __enter__(self) -> AirflowApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def wait_for_dag(self, dag: str) -> None:
        """Return when the DAG is there. ApiFailed with the import errors when it does not come."""
        deadline = time.monotonic() + DAG_SECONDS
        while time.monotonic() < deadline:
            if self._client.get(f"/dags/{dag}").status_code == httpx.codes.OK:
                return
            errors = self._call("GET", "/importErrors")["import_errors"]
            if errors:
                raise ApiFailed(f"a DAG file cannot be imported: {errors[0]['stack_trace'].strip().splitlines()[-1]}")
            time.sleep(POLL_SECONDS)
        raise ApiFailed(f"DAG {dag} did not appear within {DAG_SECONDS:.0f} s")

    def unpause(self, dag: str) -> str:
        """Unpause a DAG that has a schedule and no run yet: Airflow starts the run of the last interval. The run id."""
        self._call("PATCH", f"/dags/{dag}", {"is_paused": False})
        deadline = time.monotonic() + DAG_SECONDS
        while time.monotonic() < deadline:
            if runs := self._call("GET", f"/dags/{dag}/dagRuns")["dag_runs"]:
                return str(runs[0]["dag_run_id"])
            time.sleep(POLL_SECONDS)
        raise ApiFailed(f"Airflow started no run of DAG {dag} within {DAG_SECONDS:.0f} s after it was unpaused")

    def trigger(self, dag: str) -> str:
        """Unpause the DAG and start a run of it now; the run id."""
        self._call("PATCH", f"/dags/{dag}", {"is_paused": False})
        return str(self._call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None})["dag_run_id"])

    def trigger_interval(self, dag: str, started: datetime, ended: datetime, topic: str) -> str:
        """Start a run that copies what the ledger lacks of one topic in the time `[started, ended)`; the run id."""
        interval = {"data_interval_start": started.isoformat(), "data_interval_end": ended.isoformat()}
        conf = {"bound": "interval", "topics": [topic]}
        body = {"logical_date": ended.isoformat(), **interval, "conf": conf}
        return str(self._call("POST", f"/dags/{dag}/dagRuns", body)["dag_run_id"])

    def run_state(self, dag: str, run: str) -> RunState:
        """How far a run is."""
        state = self._call("GET", f"/dags/{dag}/dagRuns/{run}")["state"]
        instances = self._call("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        order = {"plan_run": 0, "prepare_topics": 1, "copy_records": 2, "report_outcome": 3}
        instances.sort(key=lambda instance: order.get(instance["task_id"], len(order)))
        return RunState(run, state, {instance["task_id"]: instance["state"] or "waiting" for instance in instances})

    def report(self, dag: str, run: str) -> dict[str, Any] | None:
        """The run's report from its XCom; None when there is none."""
        answer = self._client.get(f"/dags/{dag}/dagRuns/{run}/taskInstances/report_outcome/xcomEntries/return_value")
        if answer.status_code != httpx.codes.OK:
            return None
        value = answer.json()["value"]
        found: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
        return found

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._client.request(method, path, json=body)
        deadline = time.monotonic() + LOCKED_SECONDS
        while _locked(answer) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            answer = self._client.request(method, path, json=body)
        if answer.status_code >= httpx.codes.BAD_REQUEST:
            raise ApiFailed(f"{method} {path}: {answer.status_code}: {answer.text[:300]}")
        return answer.json()


def _locked(answer: httpx.Response) -> bool:
    """Whether the database was locked, so that nothing was written: Airflow says so, or just that it made an error."""
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return True
    return answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR and "Database error" in answer.text
