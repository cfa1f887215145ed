"""Clusters keep their data through kills, and are never mistaken for other processes."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from ferry.sandbox import SandboxCluster, read_all
from ferry.sandbox.broker_process import find_broker
from ferry.sandbox.cluster import SandboxFailed
from ferry.sandbox.jars import resolve_jars
from ferry.sandbox.server_properties import format_storage, write_server_properties

pytestmark = pytest.mark.brokers


def test_data_survives_kill_and_restart(
    cluster_factory: Callable[..., SandboxCluster], topic_factory: Callable[..., str], produce: Callable[..., None]
) -> None:
    cluster = cluster_factory()
    topic = topic_factory(cluster)
    produce(cluster, topic, [(0, b"k", b"1"), (0, b"k", b"2")], acks="all")
    address, first = cluster.bootstrap, cluster.pid
    cluster.kill()
    assert not cluster.running
    assert not psutil.pid_exists(first)
    cluster.run()
    assert cluster.bootstrap == address
    assert [record.value for record in read_all(cluster.bootstrap, topic)[0]] == [b"1", b"2"]
    second = cluster.pid
    cluster.restart()
    assert cluster.pid not in {first, second}
    assert [record.value for record in read_all(cluster.bootstrap, topic)[0]] == [b"1", b"2"]


def test_a_paused_cluster_is_not_gone(cluster_factory: Callable[..., SandboxCluster]) -> None:
    cluster = cluster_factory()
    cluster.pause()
    until(lambda: psutil.Process(cluster.pid).status() == psutil.STATUS_STOPPED)
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


def test_a_cluster_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SandboxFailed, match=r"num\.partitions"):
        SandboxCluster.start(tmp_path / "refused", "refused", properties={"num.partitions": "nonsense"})
    # This one passes the storage tool, so the message is the end of the broker's own log.
    with pytest.raises(SandboxFailed, match=r"ended with code 1(.|\n)*no\.such\.Class"):
        SandboxCluster.start(tmp_path / "ends", "ends", properties={"authorizer.class.name": "no.such.Class"})
    ended = SandboxCluster.load(tmp_path / "ends")
    assert ended is not None
    assert not ended.running


def test_a_cluster_id_may_begin_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=b"\xfb" + bytes(14) + b"\x01"))
    write_server_properties(tmp_path / "server.properties", (1, 2), {}, {}, authorizer=False)
    format_storage(tmp_path / "server.properties", resolve_jars(), ())
    assert "cluster.id=-w" in (tmp_path / "data" / "meta.properties").read_text()


def test_a_recycled_pid_is_left_alone(tmp_path: Path) -> None:
    """Neither the pid nor the start time is enough: the process must run this cluster."""
    stranger = psutil.Process()
    for started in (stranger.create_time() - 1000, stranger.create_time()):
        cluster = SandboxCluster("x", tmp_path, 1, 2, pid=stranger.pid, started=started)
        assert not cluster.running
        cluster.kill()  # would end this very process
        cluster.stop()


def test_an_unrecorded_process_is_found(cluster_factory: Callable[..., SandboxCluster]) -> None:
    cluster = cluster_factory()
    state = cluster.directory / "cluster.json"
    state.write_text(state.read_text().replace(f'"pid": {cluster.pid}', '"pid": 0'))
    found = SandboxCluster.load(cluster.directory)
    assert found is not None
    assert (found.pid, found.running) == (cluster.pid, True)
    assert found.java_options == cluster.java_options
    found.stop()
    assert not cluster.running
    assert find_broker(cluster.properties_file) is None


def test_settings_reach_the_broker(cluster_factory: Callable[..., SandboxCluster], topic_factory: Callable[..., str]) -> None:
    cluster = cluster_factory({"message.max.bytes": "2000"}, java_options=("-Xmx384m",))
    assert "-Xmx384m" in psutil.Process(cluster.pid).cmdline()
    topic = topic_factory(cluster)
    assert refusal(cluster.client_settings(), topic, b"x" * 5_000) == KafkaError.MSG_SIZE_TOO_LARGE


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


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():  # signals take effect in their own time
        assert time.monotonic() < deadline
