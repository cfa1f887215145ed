"""Fixtures over a production Airflow. One for each executor serves all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from demo.airflow_api import AirflowApi
from tests.conftest import Lab
from tests.drills.production.production_airflow import ProductionAirflow
from tests.drills.production.replication import DAG_FILE, Replication
from tests.drills.production.servers import missing_packages, postgresql, redis
from tests.virtual_environment import virtual_environment
from tools.release.building import ROOT, build

from ferry.config import load_config

CELERY, LOCAL = "CeleryExecutor", "LocalExecutor"
# What an Airflow needs beside Ferry and its requirements. The provider (3.26.0) cannot be imported with Celery 5.7.
MORE_PACKAGES = ("apache-airflow-providers-celery", "celery<5.7", "psycopg2-binary", "asyncpg")
Replicate = Callable[..., Replication]


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ferry's wheel and the locked requirements, and what production adds."""
    if missing := missing_packages():
        told = f"PostgreSQL and Redis are needed: apt-get install {' '.join(missing)}"
        pytest.fail(told) if "FERRY_PRODUCTION" in os.environ else pytest.skip(told)
    place = tmp_path_factory.mktemp("production")
    wheel = f"kafka-ferry[airflow,spark] @ {build('wheel', place).as_uri()}"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return virtual_environment(place / "venv", version, wheel, *MORE_PACKAGES, constraints=ROOT / "requirements.txt")


@pytest.fixture(scope="session", params=[CELERY, LOCAL])
def started(request: pytest.FixtureRequest, python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProductionAirflow]:
    with ExitStack() as running:
        database = running.enter_context(postgresql())
        broker = running.enter_context(redis()) if request.param == CELERY else ""
        airflow = ProductionAirflow(tmp_path_factory.mktemp("airflow"), python, database, broker)
        running.callback(airflow.stop)
        airflow.start()
        yield airflow


@pytest.fixture
def airflow(started: ProductionAirflow) -> ProductionAirflow:
    """All its services run, also those that a test has killed."""
    started.start()
    return started


@pytest.fixture
def api(airflow: ProductionAirflow) -> Iterator[AirflowApi]:
    with AirflowApi(airflow.url, airflow.user, airflow.password) as api:
        yield api


@pytest.fixture
def replicate(airflow: ProductionAirflow, api: AirflowApi, lab: Lab) -> Iterator[Replicate]:
    """Have Airflow know a flow: `replicate(topic, *lines)`. At the end of the test its DAG is paused."""
    with ExitStack() as paused:

        def begin(topic: str, *lines: str) -> Replication:
            config = lab.config(f"A->B.topics = {topic}", *lines)
            replication = Replication(api, config, load_config(config).flows[0], topic, lab.source, lab.target)
            (airflow.dags / f"{topic}.py").write_text(DAG_FILE.format(config=str(config)))
            api.wait_for_dag(replication.dag)
            paused.callback(replication.pause, True)
            return replication

        yield begin
