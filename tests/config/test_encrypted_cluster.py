"""Copies between brokers that want TLS and a client certificate, by settings of every format: both of Ferry's clients, large responses."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.opened import assemble_report, copy_run, prepare_run
from tools.kafka import SandboxCluster, compare_topics

from ferry.config import load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode

pytestmark = pytest.mark.brokers

PASSWORD = "changeit"
RECORDS, RECORD_BYTES = 300, 20_000


@pytest.fixture
def encrypted(cluster_factory: Callable[..., SandboxCluster], authority: Any, tmp_path: Path) -> SandboxCluster:
    """A broker with TLS only, that takes nobody without a certificate of the authority."""
    (tmp_path / "broker.pem").write_text(
        authority.local_broker.key_pem() + authority.local_broker.certificate_pem + authority.intermediate.certificate_pem
    )
    (tmp_path / "root.pem").write_text(authority.root.certificate_pem)
    return cluster_factory(
        {
            "listeners": "SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": "SSL://localhost:{port}",
            "inter.broker.listener.name": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(tmp_path / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(tmp_path / "root.pem"),
            "ssl.client.auth": "required",
        }
    )


@pytest.fixture
def librdkafka(encrypted: SandboxCluster, authority: Any, tmp_path: Path) -> dict[str, str]:
    """Settings of a client that shares nothing with Ferry's configuration."""
    chain = authority.client.certificate_pem + authority.intermediate.certificate_pem
    (tmp_path / "client.pem").write_text(chain)
    (tmp_path / "client.key").write_text(authority.client.key_pem())
    return {
        "bootstrap.servers": f"localhost:{encrypted.port}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "root.pem"),
        "ssl.certificate.location": str(tmp_path / "client.pem"),
        "ssl.key.location": str(tmp_path / "client.key"),
    }


@pytest.mark.parametrize("from_encrypted", [True, False], ids=["from", "to"])
def test_records_cross_encrypted_connections_unchanged(
    from_encrypted: bool,
    encrypted: SandboxCluster,
    librdkafka: dict[str, str],
    source_cluster: SandboxCluster,
    authority: Any,
    tmp_path: Path,
) -> None:
    plain = {"bootstrap.servers": source_cluster.bootstrap}
    source, target = (librdkafka, plain) if from_encrypted else (plain, librdkafka)
    topic = f"t-{secrets.token_hex(4)}"
    admin = AdminClient(source)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    producer = Producer({**source, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce(topic, value=secrets.token_bytes(RECORD_BYTES), key=str(number).encode(), partition=number % 2)
    assert producer.flush(60) == 0
    chain = authority.client.certificate_pem + authority.intermediate.certificate_pem
    (tmp_path / "both.pem").write_text(authority.client.key_pem(PASSWORD) + chain)
    names = (f"a{secrets.token_hex(4)}", f"b{secrets.token_hex(4)}")
    secured = names[0] if from_encrypted else names[1]
    config = tmp_path / "mm2.properties"
    config.write_text(
        f"clusters = {names[0]}, {names[1]}\n"
        f"{names[0]}.bootstrap.servers = {source['bootstrap.servers']}\n"
        f"{names[1]}.bootstrap.servers = {target['bootstrap.servers']}\n"
        f"{secured}.security.protocol = SSL\n"
        f"{secured}.ssl.truststore.type = PEM\n{secured}.ssl.truststore.location = {tmp_path / 'root.pem'}\n"
        f"{secured}.ssl.keystore.type = PEM\n{secured}.ssl.keystore.location = {tmp_path / 'both.pem'}\n"
        f"{secured}.ssl.key.password = {PASSWORD}\n"
        f"{names[0]}->{names[1]}.enabled = true\n{names[0]}->{names[1]}.topics = {topic}\n"
        "replication.factor = 1\nferry.internal.topics.replication.factor = 1\n",
        encoding="latin-1",
    )
    flow = load_config(config).flows[0]
    request = RunRequest(flow.name, "run-1")
    prepare_run(flow, request, spark_follows=True)
    copy_run(flow, request, InlineLaneRunner(), lambda _: None)
    report = assemble_report(flow, request)
    assert (report.exit_code, report.records) == (ExitCode.DONE, RECORDS)
    found = compare_topics(source, target, {topic: f"{names[0]}.{topic}"})
    assert (found.equal, found.records) == (True, RECORDS)
