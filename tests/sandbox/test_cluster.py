"""Clusters keep their data through kills, and are never mistaken for other processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from ferry.sandbox import SandboxCluster, down, read_all, status, up
from ferry.sandbox.cluster import SandboxFailed

pytestmark = pytest.mark.brokers


def test_data_survives_kill_and_restart(
    cluster_factory: Callable[..., SandboxCluster], topic_factory: Callable[..., str], produce: Callable[..., None]
) -> None:
    cluster = cluster_factory()
    topic = topic_factory(cluster)
    produce(cluster, topic, [(0, b"k", b"1"), (0, b"k", b"2")], acks="all")
    address = cluster.bootstrap
    cluster.kill()
    assert not cluster.running
    cluster.restart()
    assert cluster.bootstrap == address
    assert [record.value for record in read_all(cluster.bootstrap, topic)[0]] == [b"1", b"2"]


def test_a_paused_cluster_is_not_gone(cluster_factory: Callable[..., SandboxCluster]) -> None:
    cluster = cluster_factory()
    cluster.pause()
    deadline = time.monotonic() + 10
    while psutil.Process(cluster.pid).status() != psutil.STATUS_STOPPED:  # signals take effect in their own time
        assert time.monotonic() < deadline
    assert cluster.running
    cluster.stop()
    assert not cluster.running


def test_a_cluster_that_cannot_start_shows_its_log(cluster_factory: Callable[..., SandboxCluster]) -> None:
    with pytest.raises(SandboxFailed, match=r"log\.retention|num\.partitions|nonsense"):
        cluster_factory(properties={"num.partitions": "nonsense"})


def test_a_recycled_pid_is_left_alone(tmp_path: Path) -> None:
    stranger = psutil.Process()
    cluster = SandboxCluster("x", tmp_path, 1, 2, pid=stranger.pid, started=stranger.create_time() - 1000)
    assert not cluster.running
    cluster.kill()  # would end this very process
    cluster.stop()


def test_up_twice_and_down(tmp_path: Path) -> None:
    try:
        first = up(tmp_path)
        assert first.source
        assert first.target
        assert up(tmp_path) == first
        assert "A->B.enabled = true" in Path(first.config).read_text()
    finally:
        gone = down(tmp_path)
    assert (gone.source, gone.target, gone.config) == ("", "", "")
    assert not psutil.pid_exists(first.source_pid)
    assert not list(tmp_path.iterdir())
    assert status(tmp_path) == gone
