"""`ferry sandbox up|down|status`: two clusters, A and B, and a ready `mm2.properties`.

What runs is known from each cluster's own state file (pid and start time), so `up` twice keeps what runs and `down` works after any
interruption.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ferry.sandbox.cluster import SandboxCluster

NAMES = ("A", "B")
CONFIG_FILE = "mm2.properties"


@dataclass(frozen=True)
class SandboxStatus:
    """Where the two clusters are. Empty addresses: not running."""

    directory: str
    config: str
    source: str
    target: str
    source_pid: int
    target_pid: int


def up(directory: Path) -> SandboxStatus:
    """Start what does not run yet, and write the config."""
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(len(NAMES)) as pool:
        clusters = list(pool.map(lambda name: _running(directory / name, name), NAMES))
    (directory / CONFIG_FILE).write_text(_config(*clusters), encoding="latin-1")
    return status(directory)


def down(directory: Path) -> SandboxStatus:
    """Stop both clusters and remove their data."""
    directory = directory.resolve()
    for name in NAMES:
        cluster = SandboxCluster.load(directory / name)
        if cluster is not None:
            cluster.stop()
        shutil.rmtree(directory / name, ignore_errors=True)
    (directory / CONFIG_FILE).unlink(missing_ok=True)
    return status(directory)


def status(directory: Path) -> SandboxStatus:
    """What runs now."""
    directory = directory.resolve()
    clusters = [SandboxCluster.load(directory / name) for name in NAMES]
    running = [cluster if cluster is not None and cluster.running else None for cluster in clusters]
    source, target = running
    return SandboxStatus(
        directory=str(directory),
        config=str(directory / CONFIG_FILE) if (directory / CONFIG_FILE).exists() else "",
        source=source.bootstrap if source else "",
        target=target.bootstrap if target else "",
        source_pid=source.pid if source else 0,
        target_pid=target.pid if target else 0,
    )


def _running(directory: Path, name: str) -> SandboxCluster:
    cluster = SandboxCluster.load(directory)
    if cluster is not None and cluster.running:
        return cluster
    if cluster is not None:
        cluster.run()
        return cluster
    shutil.rmtree(directory, ignore_errors=True)  # an interrupted first start left no state file
    return SandboxCluster.start(directory, name)


def _config(source: SandboxCluster, target: SandboxCluster) -> str:
    return (
        "# Two sandbox clusters. MirrorMaker 2 reads the same file.\n"
        "clusters = A, B\n"
        f"A.bootstrap.servers = {source.bootstrap}\n"
        f"B.bootstrap.servers = {target.bootstrap}\n"
        "A->B.enabled = true\n"
        "A->B.topics = .*\n"
        "replication.factor = 1\n"
        "# Airflow starts a run every ten minutes once the DAG is unpaused.\n"
        "A->B.ferry.schedule = */10 * * * *\n"
    )
