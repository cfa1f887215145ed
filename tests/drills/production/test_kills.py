"""A worker and a scheduler are killed in the middle of `copy_records`, under the executors of a production Airflow."""

from __future__ import annotations

import random
import signal

import psutil
import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.drills.faults.processes import lives, send, tree_of
from tests.drills.production.conftest import Replicate
from tests.drills.production.production_airflow import ProductionAirflow
from tests.drills.production.replication import Replication
from tests.waiting import until
from tools.kafka import read_all

pytestmark = [pytest.mark.production, pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark, pytest.mark.faults]

PARTITIONS, RECORDS, SIZE = 4, 2_000, 4_000
# Small batches and short transactions: a slow copy commits all along.
RECORDS_A_BATCH = 5
COPY = ("ferry.transaction.seconds = 1", "ferry.lanes = 2", "tasks.max = 2")
# Eight megabytes then take thirteen minutes: longer than Airflow takes to notice that a worker died.
CRAWLING = "ferry.max.rate.mb = 0.01"
# And then one and a half.
SLOW = "ferry.max.rate.mb = 0.1"


@pytest.fixture
def topic(lab: Lab) -> str:
    name = lab.topic(lab.source, partitions=PARTITIONS)
    seeded = random.Random(name)
    producer = Producer({**lab.source.client_settings(), "batch.num.messages": RECORDS_A_BATCH})
    for number in range(RECORDS):
        producer.produce(name, seeded.randbytes(SIZE), key=str(number), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0
    return name


def hurry(replication: Replication) -> None:
    """Tries that begin from now on copy as fast as they can. The one that runs has read the file already."""
    text = replication.config.read_text(encoding="latin-1")
    replication.config.write_text(text.replace(CRAWLING, ""), encoding="latin-1")


def in_the_middle(airflow: ProductionAirflow, replication: Replication) -> tuple[str, psutil.Process]:
    """A run whose copy has committed something and not everything, and the JVM of its Spark driver."""
    run = replication.api.trigger(replication.dag)
    driver = airflow.driver(replication.config)
    replication.until_committed(lambda offsets: offsets > 0)
    assert 0 < sum(map(len, read_all(replication.target.bootstrap, replication.remote))) < RECORDS
    return run, driver


def kill(processes: list[psutil.Process]) -> None:
    """Return when they are gone."""
    send(processes, signal.SIGKILL)
    until(lambda: not any(map(lives, processes)), lambda: [process for process in processes if lives(process)])


def assert_copied_once(replication: Replication, run: str) -> None:
    state = replication.ended(run)
    assert state.state == "success", state.tasks
    assert replication.copied_records(run) == RECORDS
    found = replication.compared()
    assert (found.equal, found.records) == (True, RECORDS), found.differences


@pytest.mark.parametrize("copy_dies", [True, False], ids=["and its copy", "and its copy goes on"])
def test_a_worker_is_killed(
    airflow: ProductionAirflow, replicate: Replicate, topic: str, copy_only: tuple[str, ...], copy_dies: bool
) -> None:
    replication = replicate(topic, CRAWLING, *COPY, *copy_only)
    run, driver = in_the_middle(airflow, replication)
    supervisor, service = driver.parents()[1:3]
    assert service in [airflow.service(name) for name in (*airflow.workers, "scheduler")]
    # Of CeleryExecutor a whole worker; LocalExecutor has its workers below the scheduler.
    worker = [service, *service.children()] if airflow.workers else [supervisor]
    kill(tree_of(worker[0].pid) if copy_dies else worker)
    hurry(replication)
    airflow.driver(replication.config, beside=[driver])
    assert lives(driver) != copy_dies

    assert_copied_once(replication, run)
    assert replication.tries(run, "copy_records") == 2
    until(lambda: not lives(driver), lambda: "the copy of the killed worker still runs")


def test_the_scheduler_is_killed(airflow: ProductionAirflow, replicate: Replicate, topic: str, copy_only: tuple[str, ...]) -> None:
    replication = replicate(topic, SLOW if airflow.workers else CRAWLING, *COPY, *copy_only)
    run, driver = in_the_middle(airflow, replication)
    scheduler = airflow.service("scheduler")
    # LocalExecutor's workers end with it, as under systemd or in a container: else they keep its connections to PostgreSQL open, perhaps
    # with the lock without which no scheduler starts a task.
    kill([scheduler] if airflow.workers else [scheduler, *scheduler.children()])
    hurry(replication)
    airflow.start()

    assert_copied_once(replication, run)
    # The new scheduler adopts the tasks of Celery's workers, and starts those of LocalExecutor again.
    assert replication.tries(run, "copy_records") == (1 if airflow.workers else 2)
    until(lambda: not lives(driver), lambda: "the copy of the killed scheduler still runs")
