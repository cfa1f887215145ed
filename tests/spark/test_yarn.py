"""Runs on YARN: executors of a fixed number and by dynamic allocation, an archive, `--py-files`, a container that is killed, Airflow."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from demo.airflow_api import AirflowApi
from tests.conftest import Lab
from tests.drills.faults.processes import command_of
from tests.drills.production.replication import Replication
from tests.own_airflow import OwnAirflow
from tests.spark.test_worker_loss import PARTITIONS, RECORDS, SLOW, committed, equal, fill, started
from tests.waiting import until
from tools.kafka import read_all
from tools.spark.site import site
from tools.spark.standalone import kill
from tools.spark.yarn import yarn

from ferry.config import load_config

pytestmark = [pytest.mark.spark_drill, pytest.mark.spark, pytest.mark.brokers]

RUN_SECONDS = 600.0
SMALL = {"spark.executor.memory": "480m", "spark.executor.cores": "1", "spark.yarn.am.memory": "384m"}
FIXED = {"spark.executor.instances": "2"}
DYNAMIC = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "2"}
TWO_TASKS = ("tasks.max = 2", "ferry.lanes = 4")
# The value that a reader of the target gets says where the handler was imported from.
HANDLER = """
from dataclasses import replace

def handle(record):
    return [replace(record, value=__file__.encode())]
"""
# On YARN executors get the driver's PYTHONPATH, so it must not be there: only this process has the handler on its path.
WITH_HANDLERS = "import sys; sys.path.append(sys.argv[1]); sys.argv[:] = sys.argv[2:]; from ferry.cli.main import main; main()"
# Make yarn SEED=7 sets another one.
SEED = os.environ.get("FERRY_YARN_SEED", "1")


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with yarn(tmp_path_factory.mktemp("yarn"), memory_mib=6144, cores=6) as configuration:
        yield configuration


@pytest.fixture
def topic(lab: Lab) -> str:
    name = lab.topic(lab.source, partitions=PARTITIONS)
    fill(lab.source, name)
    return name


@pytest.fixture
def on_yarn(hadoop: Path, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment of a command that starts small executors there, with further Spark settings of the site."""

    def environment(settings: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, **site(tmp_path, {**SMALL, **settings}), "HADOOP_CONF_DIR": str(hadoop)}

    return environment


def command(config: Path) -> list[str]:
    return [str(Path(sys.executable).parent / "ferry"), "run", str(config), "--flow", load_config(config).flows[0].name, "--master", "yarn"]


def remote_of(config: Path, topic: str) -> str:
    return f"{load_config(config).flows[0].source.alias}.{topic}"


def containers(hadoop: Path, marks: str) -> list[psutil.Process]:
    """Processes of containers with this in their command line. Only theirs name the directory of this YARN, or have it as their own."""
    found = []
    for process in psutil.process_iter():
        try:
            told = f"{process.cwd()} {command_of(process)}"
        except psutil.Error:
            continue
        if str(hadoop.parent / "local") in told and marks in told:
            found.append(process)
    return found


@pytest.mark.parametrize("executors", [FIXED, DYNAMIC], ids=["fixed", "dynamic allocation"])
def test_a_run_copies_on_yarn(executors: Mapping[str, str], on_yarn: Callable[..., dict[str, str]], lab: Lab, topic: str) -> None:
    config = lab.config(f"A->B.topics = {topic}", *TWO_TASKS, *lab.copy_only)
    done = subprocess.run(command(config), env=on_yarn(executors), capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert equal(lab.source, lab.target, topic, remote_of(config, topic)) == RECORDS


def test_executors_have_python_from_an_archive_and_a_handler_from_py_files(
    archive: Path,
    hadoop: Path,
    on_yarn: Callable[..., dict[str, str]],
    lab: Lab,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handlers = tmp_path / "handlers"
    handlers.mkdir()
    (handlers / "shop_places.py").write_text(HANDLER)
    monkeypatch.syspath_prepend(handlers)  # whoever reads the config imports it
    config = lab.config(f"A->B.topics = {topic}", "A->B.ferry.message.handler = shop_places:handle", *TWO_TASKS, *lab.copy_only)
    settings = {
        **FIXED,
        "spark.archives": f"{archive}#ferry",
        "spark.pyspark.python": "./ferry/bin/python",
        "spark.submit.pyFiles": str(handlers / "shop_places.py"),
    }
    pythons: set[str] = set()

    def over() -> bool:
        pythons.update(command_of(process).split(" ")[0] for process in containers(hadoop, "ferry.spark.worker_daemon"))
        return run.poll() is not None

    with started([sys.executable, "-c", WITH_HANDLERS, str(handlers), *command(config)], on_yarn(settings)) as run:
        until(over)
        said, _ = run.communicate()
    assert run.returncode == 0, said[-4000:]
    assert pythons - {""} == {"./ferry/bin/python"}
    records = [record for partition in read_all(lab.target.bootstrap, remote_of(config, topic)) for record in partition]
    assert sorted(int(record.key or b"") for record in records) == list(range(RECORDS))
    places = {(record.value or b"").decode() for record in records}
    assert all(place.startswith(str(hadoop.parent / "local")) for place in places), places


def test_a_container_is_killed_in_the_middle_of_a_copy(hadoop: Path, on_yarn: Callable[..., dict[str, str]], lab: Lab, topic: str) -> None:
    seeded = random.Random(SEED)
    after = seeded.randrange(1, RECORDS // 2)
    print(f"seed {SEED}: a container is killed once {after} records are there")  # noqa: T201 - to do it again
    config = lab.config(f"A->B.topics = {topic}", *SLOW, *lab.copy_only)
    remote = remote_of(config, topic)
    with started(command(config), on_yarn(FIXED)) as run:
        until(lambda: committed(lab.target, remote) >= after or run.poll() is not None, lambda: "nothing was committed")
        assert run.poll() is None, f"the run ended before it was struck: {run.communicate()[0][-4000:]}"
        executors = [process for process in containers(hadoop, "ExecutorBackend") if process.name() == "java"]
        assert len(executors) == 2
        kill([seeded.choice(executors)])
        said, _ = run.communicate(timeout=RUN_SECONDS)
    assert run.returncode == 0, said[-4000:]
    assert "the Spark task of lanes" in said, said[-4000:]  # it was at work
    assert equal(lab.source, lab.target, topic, remote) == RECORDS


@pytest.mark.airflow
def test_a_dag_run_copies_on_yarn(on_yarn: Callable[..., dict[str, str]], lab: Lab, topic: str, tmp_path: Path) -> None:
    config = lab.config(f"A->B.topics = {topic}", *TWO_TASKS)
    spark = {name: value for name, value in on_yarn(FIXED).items() if name.startswith(("SPARK_", "HADOOP_"))}
    connection = json.dumps({"conn_type": "spark", "host": "yarn"})
    airflow = OwnAirflow(tmp_path / "airflow", config, {**spark, "AIRFLOW_CONN_SPARK_DEFAULT": connection})
    try:
        airflow.start()
        with AirflowApi(airflow.url, airflow.user, airflow.password) as api:
            replication = Replication(api, config, load_config(config).flows[0], topic, lab.source, lab.target)
            api.wait_for_dag(replication.dag)
            run = api.trigger(replication.dag)
            ended = replication.ended(run)
            assert ended.state == "success", ended.tasks
            assert replication.copied_records(run) == RECORDS
        logs = "\n".join(log.read_text() for log in (tmp_path / "airflow" / "logs").rglob("*.log"))
        assert "--master yarn" in logs
        found = replication.compared()
        assert (found.equal, found.records) == (True, RECORDS), found.differences
    finally:
        airflow.stop()
