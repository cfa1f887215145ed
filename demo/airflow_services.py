"""Airflow's services for the demo: API server, scheduler, DAG processor; on 127.0.0.1 only, in a directory of their own.

They are started one by one rather than by `airflow standalone`, which would also serve logs on every interface. Each runs in its own
session and is recorded with pid and start time, so stopping never hits a stranger and works after any interruption.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from ferry.errors import FerryError
from ferry.sandbox.ports import free_ports

SERVICES: dict[str, list[str]] = {
    "api-server": ["api-server", "--host", "127.0.0.1", "--workers", "1"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
}
# Airflow answers after about 15 s on two cores; a busy machine with a load of 20 needed over 180 s. A service that ends is seen sooner.
START_SECONDS = 900.0
STOP_SECONDS = 15.0
# How long a service waits for others that write into SQLite. After its default of 5 s, on a busy machine, the scheduler would end.
DATABASE_SECONDS = 100
# A busy machine may need longer to read a DAG file than Airflow's 30 s, after which it counts as broken.
DAG_FILE_SECONDS = "300"
POLL_SECONDS = 0.5
STATE_FILE = "services.json"
LOG_TAIL_LINES = 15
ROOT = Path(__file__).parents[1]


class AirflowFailed(FerryError):
    """A service of the demo's Airflow did not start."""


class DemoAirflow:
    """The demo's Airflow; `user` and `password` log in to its UI."""

    user = "admin"
    services = SERVICES
    python = sys.executable

    def __init__(self, home: Path, config: Path) -> None:
        self._home = home
        self._config = config
        self._state = self._load()
        # Started by this object: they may outlive it, and are waited for when they end before.
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        """Address of the UI."""
        return f"http://127.0.0.1:{self._state['port']}"

    @property
    def password(self) -> str:
        """Made up at the first start."""
        return str(self._state["password"])

    def start(self) -> None:
        """Start the services that do not run; returns when Airflow says that all are healthy."""
        self._home.mkdir(parents=True, exist_ok=True)
        if not self._state:
            self._state = {"port": free_ports(1)[0], "password": secrets.token_urlsafe(9), "services": {}}
            self._save()
            passwords = self._home / "passwords.json"
            passwords.write_text(json.dumps({self.user: self.password}), encoding="utf-8")
            self._airflow("db", "migrate")
        for name, arguments in self.services.items():
            if self._process(name) is None:
                self._spawn(name, arguments)
        self._wait_until_healthy()

    def stop(self) -> None:
        """Stop every service with all that it started."""
        found = [process for name in self.services if (process := self._process(name)) is not None]
        everything = [child for process in found for child in (*process.children(recursive=True), process)]
        for process in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGTERM)
        _, alive = psutil.wait_procs(everything, timeout=STOP_SECONDS)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(alive, timeout=STOP_SECONDS)
        while self._children:
            self._children.pop().wait(STOP_SECONDS)

    def environment(self) -> dict[str, str]:
        """What a shell needs to use this Airflow's own commands."""
        binaries = str(Path(self.python).parent)
        sqlite = f"sqlite:///{self._home / 'airflow.db'}?timeout={DATABASE_SECONDS}"
        settings = {
            "AIRFLOW_HOME": str(self._home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": os.environ.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", sqlite),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{self.user}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self._home / "passwords.json"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self._state["port"]),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API_AUTH__JWT_SECRET": str(self._state["password"]) * 6,
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": DAG_FILE_SECONDS,
            "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": DAG_FILE_SECONDS,
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "FERRY_CONFIG": str(self._config),
            "PYSPARK_PYTHON": self.python,
            "PYTHONFAULTHANDLER": "1",
        }
        return {**os.environ, **settings, "PATH": os.pathsep.join([binaries, os.environ.get("PATH", "")])}

    def _airflow(self, *arguments: str) -> None:
        command = [self.python, "-m", "airflow", *arguments]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise AirflowFailed(f"airflow {' '.join(arguments)} ended with code {done.returncode}:\n{done.stderr[-2000:]}")

    def _spawn(self, name: str, arguments: list[str]) -> None:
        log = self._log(name)
        extra = ["--port", str(self._state["port"])] if name == "api-server" else []
        with log.open("ab") as output:
            process = subprocess.Popen(
                [self.python, "-m", "airflow", *arguments, *extra],
                cwd=self._home,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env=self.environment(),
                start_new_session=True,
            )
        self._children.append(process)
        self._state["services"][name] = {"pid": process.pid, "started": psutil.Process(process.pid).create_time()}
        self._save()

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for name in self.services:
                if self._process(name) is None:
                    raise AirflowFailed(f"airflow {name} ended; its log ends with:\n{self._tail(name)}")
            with contextlib.suppress(httpx.HTTPError):
                health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5, trust_env=False)
                parts = health.json() if health.status_code == httpx.codes.OK else {}
                if all(parts.get(part, {}).get("status") == "healthy" for part in ("metadatabase", "scheduler", "dag_processor")):
                    return
            time.sleep(POLL_SECONDS)
        raise AirflowFailed(f"Airflow was not healthy within {START_SECONDS:.0f} s; see {self._home}")

    def _process(self, name: str) -> psutil.Process | None:
        entry = self._state.get("services", {}).get(name)
        if not entry:
            return None
        try:
            process = psutil.Process(entry["pid"])
            alive = process.create_time() == entry["started"] and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if alive else None

    def _load(self) -> dict[str, Any]:
        path = self._home / STATE_FILE
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found

    def _save(self) -> None:
        scratch = self._home / f"{STATE_FILE}.new"
        scratch.write_text(json.dumps(self._state), encoding="utf-8")
        scratch.replace(self._home / STATE_FILE)

    def _log(self, name: str) -> Path:
        return self._home / f"{name}.log"

    def _tail(self, name: str) -> str:
        return "\n".join(self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])
