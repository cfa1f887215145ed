"""Brokers keep their data through kills, and are never mistaken for other processes."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tools.kafka import SandboxCluster, read_all

from ferry.sandbox.broker import LocalBroker
from ferry.sandbox.broker_process import SandboxFailed, find_process
from ferry.sandbox.jars import broker_jars
from ferry.sandbox.server_properties import format_storage, new_cluster_id, server_settings, write_settings

pytestmark = pytest.mark.brokers


@pytest.mark.long
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
    path = tmp_path / "server.properties"
    write_settings(path, server_settings(path, 1, 2))
    format_storage(path, broker_jars(), new_cluster_id())
    assert "cluster.id=-w" in (tmp_path / "data" / "meta.properties").read_text()


def test_another_process_is_not_signalled(tmp_path: Path) -> None:
    """The path of the cluster's properties is not enough, as an editor has it: the process must be a broker."""
    cluster = LocalBroker("x", tmp_path, 1, 2)
    editor = [sys.executable, "-c", "import sys; sys.stdin.read()", str(cluster.properties_file)]
    with subprocess.Popen(editor, stdin=subprocess.PIPE) as stranger:
        assert (cluster.running, cluster.pid) == (False, 0)
        cluster.kill()
        cluster.stop()
        assert stranger.poll() is None
        stranger.communicate()
        assert stranger.returncode == 0


def test_the_process_of_a_loaded_cluster_is_found(cluster_factory: Callable[..., SandboxCluster]) -> None:
    cluster = cluster_factory()
    assert SandboxCluster.load(cluster.directory) == cluster
    found = LocalBroker.load(cluster.directory)
    assert found is not None
    assert (found.pid, found.running) == (cluster.pid, True)
    found.stop()
    assert not cluster.running
    assert find_process(cluster.properties_file) is None
