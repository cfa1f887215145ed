"""A flow in a running Airflow: its DAG file, its runs, and what another client than Ferry's finds on the target."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.airflow_api import AirflowApi, RunState
from tests.waiting import until
from tools.kafka import Comparison, SandboxCluster, compare_topics
from tools.kafka.reading import NotReadable, partition_bounds

from ferry.config import Flow

# Other retries than Ferry's only so that a test need not wait for them.
DAG_FILE = """\
from datetime import timedelta
from ferry.airflow.dags import flows

flows({config!r}, default_args={{"retry_delay": timedelta(seconds=5)}})
"""


@dataclass(frozen=True)
class Replication:
    api: AirflowApi
    config: Path
    flow: Flow
    topic: str
    source: SandboxCluster
    target: SandboxCluster

    @property
    def dag(self) -> str:
        return f"ferry.{self.flow.source.alias}.{self.flow.target.alias}"

    @property
    def remote(self) -> str:
        return f"{self.flow.source.alias}.{self.topic}"

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return self.api._call(method, path, body)

    def pause(self, paused: bool) -> None:
        self.call("PATCH", f"/dags/{self.dag}", {"is_paused": paused})

    def states(self) -> dict[str, str]:
        """Of all runs, by id."""
        return {run["dag_run_id"]: run["state"] for run in self.call("GET", f"/dags/{self.dag}/dagRuns")["dag_runs"]}

    def settled(self, at_least: int) -> dict[str, str]:
        """The states, once so many runs are there and none is active."""
        until(lambda: len(self.states()) >= at_least and set(self.states().values()) <= {"success", "failed"}, self.states)
        return self.states()

    def ended(self, run: str) -> RunState:
        until(lambda: self.api.run_state(self.dag, run).finished, lambda: self.api.run_state(self.dag, run).tasks)
        return self.api.run_state(self.dag, run)

    def tries(self, run: str, task: str) -> int:
        return int(self.call("GET", f"/dags/{self.dag}/dagRuns/{run}/taskInstances/{task}")["try_number"])

    def copied_records(self, run: str) -> int:
        """As the run's report says."""
        report = self.api.report(self.dag, run)
        assert report, f"{run} has no report"
        return int(report["totals"]["records"])

    def compared(self) -> Comparison:
        return compare_topics(self.source.bootstrap, self.target.bootstrap, {self.topic: self.remote})

    def until_committed(self, something: Callable[[int], bool]) -> None:
        """Until that holds of the offsets that a reader sees in the remote topic."""
        until(lambda: something(self._offsets()), self.states)

    def _offsets(self) -> int:
        with suppress(NotReadable):  # until it is created
            return sum(end for _, end in partition_bounds(self.target.bootstrap, self.remote).values())
        return 0
