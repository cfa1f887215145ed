"""A Spark driver reads connections from a secrets backend, with what it inherits from a task: a URL in place of Airflow's database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow

ASK = "from ferry.airflow.connections import connection_lookup; found = connection_lookup()('kafka_a'); "
ASK += "from airflow.sdk._shared.secrets_masker import redact; print(found.host, found.password, redact(found.password))"


@pytest.mark.long
def test_a_driver_of_a_task_reads_a_secrets_backend(tmp_path: Path) -> None:
    connections = tmp_path / "connections.json"
    connections.write_text(json.dumps({"kafka_a": {"conn_type": "kafka", "host": "a1", "password": "s3cret"}}))
    inherited = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "airflow-db-not-allowed:///",
        "AIRFLOW__SECRETS__BACKEND": "airflow.secrets.local_filesystem.LocalFilesystemBackend",
        "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps({"connections_file_path": str(connections)}),
    }
    done = subprocess.run([sys.executable, "-c", ASK], env=inherited, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["a1 s3cret ***"], done.stderr[-2000:]
