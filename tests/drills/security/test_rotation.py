"""Logins that every task of a DAG run takes from a secrets backend of Airflow, and new passwords while a run copies."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from demo.airflow_api import AirflowApi
from tests.drills.production.replication import DAG_FILE, Replication
from tests.drills.security.conftest import Grounds
from tests.drills.security.guarded import Guarded
from tests.drills.security.searching import Search, Watch
from tests.own_airflow import OwnAirflow
from tools.kafka.reading import read_all

from ferry.airflow.connections import placeholder
from ferry.config import load_config

pytestmark = [pytest.mark.airflow, pytest.mark.brokers, pytest.mark.spark, pytest.mark.airflow_drill]

PARTITIONS, RECORDS, SIZE = 4, 1_000, 4_000
# Four megabytes then take twenty seconds.
SLOW = "ferry.max.rate.mb = 0.2"
MECHANISM = "SCRAM-SHA-512"


class Logins:
    """A user on both clusters, whose passwords are in a file of LocalFilesystemBackend."""

    def __init__(self, grounds: Grounds, file: Path) -> None:
        self.clusters: Mapping[str, Guarded] = {"kafka_source": grounds.source, "kafka_target": grounds.target}
        self.user, self._file = f"user-{secrets.token_hex(3)}", file

    def new_passwords(self) -> dict[str, str]:
        """By connection."""
        return {name: f"{name}-s3cret-{secrets.token_hex(8)}" for name in self.clusters}

    def change(self, passwords: Mapping[str, str]) -> None:
        """On the brokers and in the file."""
        for name, cluster in self.clusters.items():
            login = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4_096)
            change = UserScramCredentialUpsertion(self.user, login, passwords[name].encode())
            admin = AdminClient({"bootstrap.servers": cluster.address("PLAIN")})
            for done in admin.alter_user_scram_credentials([change]).values():
                done.result(30)
        new = self._file.with_suffix(".new.json")
        new.write_text(json.dumps({name: self._connection(name, password) for name, password in passwords.items()}))
        new.replace(self._file)

    def accepted(self, name: str, password: str) -> bool:
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MECHANISM, "sasl.username": self.user, "sasl.password": password}
        client = AdminClient({"bootstrap.servers": self.clusters[name].address("SASL"), **login, "log_level": 0})
        try:
            client.list_topics(timeout=10)
        except KafkaException:
            return False
        return True

    def _connection(self, name: str, password: str) -> dict[str, object]:
        host, port = self.clusters[name].address("SASL").split(":")
        extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MECHANISM}
        return {"conn_type": "kafka", "host": host, "port": int(port), "login": self.user, "password": password, "extra": extra}


def test_new_passwords_in_a_secrets_backend_while_a_run_copies(grounds: Grounds, tmp_path: Path) -> None:
    logins = Logins(grounds, tmp_path / "connections.json")
    old, new = logins.new_passwords(), logins.new_passwords()
    logins.change(old)
    topic, source, target = (f"{letter}{secrets.token_hex(4)}" for letter in "tab")
    plain = {"bootstrap.servers": grounds.source.address("PLAIN")}
    admin = AdminClient(plain)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    config = tmp_path / "mm2.properties"
    lines = [
        f"clusters = {source}, {target}",
        f"{source}.ferry.airflow.connection = kafka_source",
        f"{target}.ferry.airflow.connection = kafka_target",
        f"{source}->{target}.enabled = true",
        f"{source}->{target}.topics = {topic}",
        f"{source}->{target}.heartbeats.replication.enabled = false",
        f"{target}->{source}.emit.heartbeats.enabled = false",
        "sync.topic.acls.enabled = false",
        "replication.factor = 1",
        "ferry.internal.topics.replication.factor = 1",
        "ferry.transaction.seconds = 1",
    ]
    config.write_text("\n".join([*lines, SLOW, ""]))
    home = tmp_path / "airflow"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "replication.py").write_text(DAG_FILE.format(config=str(config)))
    settings = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__SECRETS__BACKEND": "airflow.secrets.local_filesystem.LocalFilesystemBackend",
        "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps({"connections_file_path": str(tmp_path / "connections.json")}),
    }
    airflow = OwnAirflow(home, config, settings)

    def fill() -> None:
        producer = Producer({**plain, "batch.num.messages": 5})
        for number in range(RECORDS):
            producer.produce(topic, secrets.token_bytes(SIZE), key=str(number), partition=number % PARTITIONS)
            producer.poll(0)
        assert producer.flush(60) == 0

    fill()
    search = Search({f"{age} {name}": text for age, texts in (("old", old), ("new", new)) for name, text in texts.items()})
    try:
        airflow.start()
        with Watch(search, os.getpid()), AirflowApi(airflow.url, airflow.user, airflow.password) as api:
            flow = load_config(config, connections=placeholder).flows[0]
            copy = Replication(api, config, flow, topic, grounds.source.cluster, grounds.target.cluster)
            api.wait_for_dag(copy.dag)
            run = api.trigger(copy.dag)
            copy.until_committed(lambda offsets: offsets > 0)
            logins.change(new)
            assert 0 < sum(map(len, read_all(grounds.target.cluster.bootstrap, copy.remote))) < RECORDS
            assert not any(logins.accepted(name, password) for name, password in old.items())
            ended = copy.ended(run)
            assert ended.state == "success", ended.tasks
            assert copy.compared().equal
            print(f"tries of the copy during which the passwords changed: {copy.tries(run, 'copy_records')}")  # noqa: T201 - a figure

            fill()
            config.write_text("\n".join([*lines, ""]))
            last = copy.ended(api.trigger(copy.dag))
            assert last.state == "success", last.tasks
            assert set(last.tasks.values()) <= {"success", "skipped"}
            found = copy.compared()
            assert (found.equal, found.records) == (True, 2 * RECORDS), found.differences
    finally:
        airflow.stop()
    search.files("log", home / "logs", *home.glob("*.log"))
    with sqlite3.connect(home / "airflow.db") as database:
        search.look("database: airflow.db", "\n".join(database.iterdump()))
    search.topics({"bootstrap.servers": grounds.target.address("PLAIN")}, "mm2-ferry")
    assert search.found == set()
    assert {"log", "database", "topic", "arguments", "environment"} <= set(search.looked_at)
