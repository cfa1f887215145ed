"""A DAG run leaves no secret in Airflow: in its database (XCom, rendered templates, serialized DAGs), its logs and its processes."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.drills.security.searching import Search, Watch
from tools.kafka import SandboxCluster

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark]

LITERAL, CONNECTION, REFERRED = (f"{name}-s3cret-{secrets.token_hex(8)}" for name in ("literal", "connection", "referred"))
RUN_SECONDS = 1_500
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.long
def test_a_dag_run_leaves_no_secret_in_airflow(
    airflow_database: None, cluster_factory: Callable[..., SandboxCluster], tmp_path: Path
) -> None:
    source = cluster_factory(users={"reader": CONNECTION})
    target = cluster_factory(users={"writer": LITERAL, "looker": REFERRED})
    topic = f"t-{secrets.token_hex(4)}"
    admin = AdminClient(source.client_settings())
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer(source.client_settings())
    for number in range(50):
        producer.produce(topic, value=str(number).encode())
    assert producer.flush(30) == 0
    marks = [f"{letter}{secrets.token_hex(3)}" for letter in "ab"]
    (tmp_path / "secrets.properties").write_text(f"looker={REFERRED}\n")
    config = tmp_path / "mm2.properties"
    config.write_text(
        f"""clusters = {marks[0]}, {marks[1]}
{marks[0]}.ferry.airflow.connection = kafka_source
{marks[1]}.bootstrap.servers = {target.bootstrap}
{marks[1]}.security.protocol = SASL_PLAINTEXT
{marks[1]}.sasl.mechanism = PLAIN
{marks[1]}.sasl.jaas.config = {PLAIN} required username="writer" password="{LITERAL}";
{marks[1]}.consumer.sasl.jaas.config = {PLAIN} required username="looker" password="${{file:{tmp_path}/secrets.properties:looker}}";
config.providers = file
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
{marks[0]}->{marks[1]}.enabled = true
{marks[0]}->{marks[1]}.topics = {topic}
{marks[0]}->{marks[1]}.heartbeats.replication.enabled = false
sync.topic.acls.enabled = false
emit.heartbeats.enabled = false
emit.offset-syncs.enabled = false
emit.checkpoints.enabled = false
replication.factor = 1
ferry.internal.topics.replication.factor = 1
"""
    )
    host, port = source.bootstrap.split(":")
    connection = {
        "conn_type": "kafka",
        "host": host,
        "port": int(port),
        "login": "reader",
        "password": CONNECTION,
        "extra": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
    }
    environment = {**os.environ, "FERRY_CONFIG": str(config), "AIRFLOW_CONN_KAFKA_SOURCE": json.dumps(connection)}
    name = f"ferry.{marks[0]}.{marks[1]}"
    command = [sys.executable, "-m", "airflow", "dags", "test", name]
    search = Search({"literal": LITERAL, "connection": CONNECTION, "referred": REFERRED})
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        with Watch(search, process.pid, leave=["connection"]) as watch:
            process.wait(RUN_SECONDS)
    said = (tmp_path / "log").read_text()
    assert "50 records" in said, said[-3000:]
    search.look("output: airflow", said)
    home = Path(os.environ["AIRFLOW_HOME"])
    search.files("log file", home / "logs")
    with sqlite3.connect(home / "airflow.db") as database:
        dump = "\n".join(database.iterdump())
    search.look("database: airflow.db", dump)
    search.topics(target.client_settings(), "mm2-ferry")
    assert search.found == set()
    assert "java" in watch.processes
    assert {"arguments", "environment", "output", "database", "topic"} <= set(search.looked_at)
    filled = {line.split('"')[1] for line in dump.splitlines() if line.startswith("INSERT INTO") and name in line}
    assert filled >= {"xcom", "rendered_task_instance_fields", "serialized_dag"}
