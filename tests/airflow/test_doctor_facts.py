"""What `ferry doctor --airflow` learns of a real Airflow, from an empty directory on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ferry.airflow.doctor_facts import names_ferry, told

pytestmark = pytest.mark.airflow

FERRY = Path(sys.executable).with_name("ferry")
CONFIG = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:2\nA->B.enabled = true\n"


class OwnAirflow:
    """An Airflow in a directory: its database, no processes."""

    def __init__(self, home: Path) -> None:
        self.home, self.dags = home, home / "dags"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "FERRY"))}
        self.environment = {**kept, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        self.dags.mkdir(parents=True)

    def airflow(self, *arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "airflow", *arguments], env=self.environment, check=True, capture_output=True)

    def doctor(self, *arguments: str, **variables: str) -> Mapping[str, Any]:
        command = [FERRY, "doctor", "--airflow", "--json", *arguments]
        done = subprocess.run(command, env={**self.environment, **variables}, capture_output=True, text=True, check=False)
        document: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == document["exit_code"] == 5, done.stderr[-4000:]
        return {"next": document["next"], **{entry["check"]: entry for entry in document["findings"] if entry["where"] != "this machine"}}


@pytest.mark.long
def test_an_airflow_from_its_directory_to_its_first_dag(tmp_path: Path) -> None:
    own = OwnAirflow(tmp_path / "airflow home")
    found = own.doctor()
    assert "no such table" in found["database"]["found"]
    assert "airflow standalone" in found["next"]
    own.airflow("db", "migrate")
    found = own.doctor()
    assert found["processes"]["found"] == "no heartbeat of scheduler and dag_processor"
    assert found["config"]["fix"] == f"mkdir -p '{own.dags}' && ferry init '{own.dags}/mm2.properties'"

    (own.dags / "mm2.properties").write_text(CONFIG.replace("enabled", "enbled"), encoding="utf-8")
    subprocess.run(["bash", "-c", own.doctor()["DAG file"]["fix"]], check=True)
    found = own.doctor()
    assert "A->B.enbled" in found["DAG file"]["found"]
    assert "Traceback" not in found["DAG file"]["found"]

    (own.dags / "mm2.properties").write_text(CONFIG, encoding="utf-8")
    found = own.doctor()
    assert found["DAG file"]["verdict"] == "ok", found["DAG file"]
    assert found["Spark connection"]["fix"] == "airflow connections add spark_default --conn-type spark --conn-host 'local[2]'"
    assert [found[check]["verdict"] for check in ("seen", "paused", "last run")] == ["failure"] * 3
    elsewhere = own.doctor(AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark"}')["Spark connection"]
    assert "has no host" in elsewhere["found"]
    assert "the environment of this shell" in elsewhere["found"]

    for command in (found["Spark connection"]["fix"], found["seen"]["fix"], found["paused"]["fix"]):
        subprocess.run(["bash", "-c", f"'{sys.executable}' -m {command}"], env=own.environment, check=True, capture_output=True)
    found = own.doctor()
    assert found["Spark connection"]["found"] == "spark_default, in Airflow's database: local[2]"
    assert f"{own.dags}/mm2.properties" in found["seen"]["found"]
    assert "paused" not in found
    assert found["last run"]["fix"] == "airflow dags trigger ferry.A.B"
    assert "airflow standalone" in found["next"], "no process runs yet"


def test_what_cannot_be_read_is_no_dag_file(tmp_path: Path) -> None:
    (tmp_path / "directory.py").mkdir()
    (tmp_path / "link.py").symlink_to("nowhere")
    (tmp_path / "flows.py").write_text("from ferry.airflow.dags import flows; flows()")
    assert [file.name for file in sorted(tmp_path.iterdir()) if names_ferry(file)] == ["flows.py"]


@pytest.mark.parametrize(
    ("trace", "text"),
    [
        (
            'Traceback (most recent call last):\n  File "x", line 1\n    flows()\nferry.errors.ConfigError: 3: a\n4: b\n',
            "ferry.errors.ConfigError: 3: a 4: b",
        ),
        ("ModuleNotFoundError: No module named 'ferry'", "ModuleNotFoundError: No module named 'ferry'"),
        ("", ""),
    ],
)
def test_the_exception_of_a_traceback(trace: str, text: str) -> None:
    assert told(trace) == text
