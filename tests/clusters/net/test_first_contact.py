"""How soon a command says that a cluster is away."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.kafka.properties_file import write_properties

from ferry.clusters.net import shared_connection
from ferry.clusters.open_cluster import open_cluster
from ferry.config import Cluster, load_config
from ferry.errors import ClusterUnreachable

pytestmark = pytest.mark.unit

FOREVER = 3_600_000


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def cluster_at(directory: Path, port: int) -> Cluster:
    lines = {"clusters": "A, B", "A.bootstrap.servers": "127.0.0.1:2", "B.bootstrap.servers": f"127.0.0.1:{port}", "A->B.enabled": "true"}
    write_properties(lines, directory / "mm2.properties")
    return load_config(directory / "mm2.properties").flows[0].target


def test_a_cluster_that_takes_no_connection_is_away_long_before_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_connection, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(shared_connection, "CONTACT_MILLISECONDS", FOREVER)
    told = r"^cluster B does not answer \(127.0.0.1:1, connection refused\)$"
    with open_cluster(cluster_at(tmp_path, 1)) as cluster, pytest.raises(ClusterUnreachable, match=told):
        cluster.first_contact()


def test_a_cluster_that_takes_a_connection_gets_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: socket.socket
) -> None:
    monkeypatch.setattr(shared_connection, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(shared_connection, "CONTACT_MILLISECONDS", 1_500)
    begun = time.monotonic()
    silent_one = cluster_at(tmp_path, silent.getsockname()[1])
    with open_cluster(silent_one) as cluster, pytest.raises(ClusterUnreachable, match="cluster B does not answer"):
        cluster.first_contact()
    assert time.monotonic() - begun >= 1.5
