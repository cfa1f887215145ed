"""A cluster's settings from an Airflow connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferry.config import ConnectionFields, FerryConfig

pytestmark = pytest.mark.unit

Load = Callable[..., FerryConfig]
CLUSTERS = "clusters=A,B\nA.ferry.airflow.connection = kafka_a\nB.bootstrap.servers=b:1\nA->B.enabled=true\n"


def settings(load: Load, fields: ConnectionFields, more: str = "") -> dict[str, object]:
    def lookup(name: str) -> ConnectionFields:
        assert name == "kafka_a"
        return fields

    return load(CLUSTERS + more, whole=True, connections=lookup).clusters["A"].librdkafka()


@pytest.mark.parametrize(
    ("fields", "servers"),
    [
        (ConnectionFields(host="a"), "a:9092"),
        (ConnectionFields(host="a", port=19092), "a:19092"),
        (ConnectionFields(host="a:1, b", port=2), "a:1,b:2"),
        (ConnectionFields(host="x", extra={"bootstrap.servers": "a:1,b:2"}), "a:1,b:2"),
    ],
)
def test_servers(load: Load, fields: ConnectionFields, servers: str) -> None:
    assert settings(load, fields)["bootstrap.servers"] == servers


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
@pytest.mark.parametrize("password", ["secret", 'a"b\\c;d\n'])
def test_login_and_password(load: Load, mechanism: str, password: str) -> None:
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
    found = settings(load, ConnectionFields("a", 1, "me", password, extra))
    assert (found["sasl.mechanism"], found["sasl.username"], found["sasl.password"]) == (mechanism, "me", password)


def test_names_of_airflows_kafka_connections(load: Load, authority: Any) -> None:
    extra = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "secret",
        "ssl.ca.pem": authority.root.certificate_pem,
        "ssl.certificate.pem": authority.client.certificate_pem,
        "ssl.key.pem": authority.client.key_pem(),
    }
    found = settings(load, ConnectionFields(extra=extra))
    assert (found["sasl.username"], found["sasl.password"]) == ("me", "secret")
    assert (found["ssl.ca.pem"], found["ssl.key.pem"]) == (authority.root.certificate_pem, authority.client.key_pem())


def test_client_credentials(load: Load) -> None:
    url = "https://login.test/token"
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": url}
    found = settings(load, ConnectionFields("a", 1, "me", "secret", extra))
    assert (found["sasl.oauthbearer.client.id"], found["sasl.oauthbearer.client.secret"]) == ("me", "secret")


def test_keys_of_the_file_win(load: Load) -> None:
    fields = ConnectionFields("a", 1, extra={"security.protocol": "SSL"})
    assert settings(load, fields, "A.security.protocol = PLAINTEXT\n")["security.protocol"] == "plaintext"
    assert settings(load, fields, "security.protocol = PLAINTEXT\n")["security.protocol"] == "ssl"


def test_extras_that_are_neither_address_nor_login_have_no_effect(load: Load) -> None:
    fields = ConnectionFields("a", 1, extra={"group.id": "g", "auto.offset.reset": "latest"})
    config = load(CLUSTERS, whole=True, connections=lambda _: fields)
    assert config.flow("A->B").start == "earliest"
    assert len(config.warnings) == 2
    for name, warning in zip(("auto.offset.reset", "group.id"), config.warnings, strict=True):
        assert f"extra {name} of the connection has no effect" in warning


def test_problems(problems: Callable[..., list[str]]) -> None:
    key = "2: A.ferry.airflow.connection: "
    assert problems(CLUSTERS, whole=True) == [
        f"{key}Airflow connections can be read inside Airflow only: write the cluster's bootstrap.servers and login here instead",
    ]
    split = ConnectionFields("a", 1, extra={"ssl.key.location": "/k"})
    (found,) = problems(CLUSTERS, whole=True, connections=lambda _: split)
    assert found.startswith(key)
    assert "extra ssl.key.location" in found
    (found,) = problems(CLUSTERS, whole=True, connections=lambda _: ConnectionFields())
    assert found == f"{key}the connection kafka_a has no host, and A has no bootstrap.servers: add one of them"
    bad = ConnectionFields("a", 1, extra={"security.protocol": "geheim"})
    (found,) = problems(CLUSTERS, whole=True, connections=lambda _: bad)
    assert found == f"{key}extra security.protocol of the connection must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"
