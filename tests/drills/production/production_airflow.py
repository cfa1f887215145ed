"""An Airflow as in production: PostgreSQL, and CeleryExecutor with two workers over Redis, or LocalExecutor.

Ferry is installed into its Python. Every process of it works in its home, by which it is found when its parent was killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from demo.airflow_services import SERVICES, STOP_SECONDS, DemoAirflow
from tests.drills.faults.processes import command_of, jvms_of, lives
from tests.waiting import until

WORKERS = ("worker-1", "worker-2")
WORKER = ["celery", "worker", "--concurrency", "2", "--skip-serve-logs"]


class ProductionAirflow(DemoAirflow):
    """`broker`: the Redis of CeleryExecutor. Without one it has LocalExecutor."""

    def __init__(self, home: Path, python: Path, database: str, broker: str = "") -> None:
        super().__init__(home, home / "unused")
        self.python = str(python)
        self.dags = home / "dags"
        self.dags.mkdir()
        self.workers = WORKERS if broker else ()
        named = {name: ["--celery-hostname", f"{name}@localhost", "--pid", str(home / f"{name}.pid")] for name in self.workers}
        self.services = {**SERVICES, **{name: [*WORKER, *options] for name, options in named.items()}}
        self._database, self._broker = database, broker

    def environment(self) -> dict[str, str]:
        own = {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor" if self._broker else "LocalExecutor",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self._home / "plugins"),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{self._database}",
            "AIRFLOW__CELERY__BROKER_URL": f"redis://{self._broker}",
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+postgresql+psycopg2://{self._database}",
            # So long Airflow waits before it takes a task for dead, and a scheduler's tasks for orphaned. Its own values are 300 s.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "15",
        }
        inherited = {name: value for name, value in super().environment().items() if name not in {"FERRY_CONFIG", "PYTHONPATH"}}
        return {**inherited, **own}

    def stop(self) -> None:
        super().stop()
        left = list(self.processes())
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=STOP_SECONDS)

    def processes(self) -> Iterator[psutil.Process]:
        """All that still works in its home, whoever is the parent now."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if Path(process.cwd()) == self._home and lives(process):
                    yield process

    def service(self, name: str) -> psutil.Process:
        found = self._process(name)
        assert found, f"{name} does not run"
        return found

    def driver(self, config: Path, *, beside: Sequence[psutil.Process] = ()) -> psutil.Process:
        """The JVM in which Spark's driver copies what this config says, once it runs; another one than those `beside` it."""
        found: list[psutil.Process] = []

        def look() -> bool:
            found.extend(process for process in jvms_of(self.processes()) if str(config) in command_of(process) and process not in beside)
            return bool(found)

        until(look, lambda: f"no Spark for {config}")
        # Scripts that become the JVM start short-lived processes with the same arguments.
        return min(found, key=psutil.Process.create_time)

    def ran(self, worker: str) -> bool:
        """Whether a Celery worker has ended a task."""
        return "succeeded in" in self._log(worker).read_text(encoding="utf-8", errors="replace")
