"""An Airflow of its own for these tests, set up before anything imports Airflow."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = tempfile.TemporaryDirectory(prefix="ferry-airflow-")

os.environ.update(
    {
        "AIRFLOW_HOME": HOME.name,
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "0",  # a busy machine may take long
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),  # Airflow's own would be too short for its library
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
    }
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Airflow and its dependencies warn about each other; Ferry cannot mend that."""
    for item in items:
        if item.nodeid.startswith("tests/airflow/"):
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def airflow_database() -> Iterator[None]:
    """An empty metadata database."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)
    yield
    HOME.cleanup()
