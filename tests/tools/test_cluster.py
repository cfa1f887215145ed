"""Clusters for tests: they can be paused, take settings, and ask for logins."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from tests.waiting import until
from tools.kafka import SandboxCluster, read_all

from ferry.sandbox.broker_process import SandboxFailed

pytestmark = pytest.mark.brokers


@pytest.mark.long
def test_a_paused_cluster_is_not_gone(cluster_factory: Callable[..., SandboxCluster]) -> None:
    cluster = cluster_factory()
    cluster.pause()
    until(lambda: psutil.Process(cluster.pid).status() == psutil.STATUS_STOPPED)  # a signal takes effect in its own time
    assert cluster.running
    assert not cluster.answers()
    cluster.resume()
    until(cluster.answers)
    with pytest.raises(SandboxFailed, match="runs already"):
        cluster.run()
    cluster.pause()
    cluster.stop()
    assert not cluster.running
    for action in (cluster.pause, cluster.resume):
        with pytest.raises(SandboxFailed, match="does not run"):
            action()
    cluster.kill()
    cluster.stop()


@pytest.mark.long
def test_settings_reach_the_broker(cluster_factory: Callable[..., SandboxCluster], topic_factory: Callable[..., str]) -> None:
    cluster = cluster_factory({"message.max.bytes": "2000"}, java_options=("-Xmx384m",))
    assert "-Xmx384m" in psutil.Process(cluster.pid).cmdline()
    topic = topic_factory(cluster)
    assert refusal(cluster.client_settings(), topic, b"x" * 5_000) == KafkaError.MSG_SIZE_TOO_LARGE


@pytest.mark.long
def test_logins_and_acls(cluster_factory: Callable[..., SandboxCluster], topic_factory: Callable[..., str]) -> None:
    users = {"admin": secrets.token_hex(8), "reader": 'quoted "and\\back'}
    cluster = cluster_factory(users=users, authorizer=True)
    topic = topic_factory(cluster)
    assert refusal(cluster.client_settings(), topic) is None
    assert refusal(cluster.client_settings("reader"), topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert [record.value for record in read_all(cluster.client_settings(), topic)[0]] == [b"value"]
    wrong = AdminClient({**cluster.client_settings(), "sasl.password": "wrong", "log_level": 0})
    with pytest.raises(KafkaException):
        wrong.list_topics(timeout=3)
    assert oct(cluster.properties_file.stat().st_mode)[-3:] == "600"
    assert oct((cluster.directory / "cluster.json").stat().st_mode)[-3:] == "600"


def refusal(settings: dict[str, str], topic: str, value: bytes = b"value") -> int | None:
    """The code of the error that a record gets, or None."""
    codes: list[int | None] = []
    producer = Producer({**settings, "log_level": 0})
    producer.produce(topic, value=value, partition=0, on_delivery=lambda error, _: codes.append(error.code() if error else None))
    assert producer.flush(30) == 0
    return codes[0]


def test_a_broker_takes_its_classes_from_the_archive(source_cluster: SandboxCluster) -> None:
    assert "/broker-classes-" in Path(f"/proc/{source_cluster.pid}/maps").read_text()
