"""`ferry sandbox up|fill|down|status`: two clusters, A and B, and a ready `mm2.properties`.

Each cluster's state file and the command lines of processes show what runs. So a second `up` keeps running clusters, and `down` works after
any interruption. Only one call at a time works on a directory: it locks the directory itself, so that no lock file is left.
"""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ferry.sandbox.broker import PROPERTIES_FILE, LocalBroker
from ferry.sandbox.broker_process import kill_all
from ferry.sandbox.jars import locked
from ferry.sandbox.sample_data import GROUP, GROUP_TOPIC, SampleNotWritten, SampleSummary, load_sample_topics, read_in_part

NAMES = ("A", "B")
CONFIG_FILE = "mm2.properties"
# A busy broker may not answer one request; a broker that runs must stay.
LOOKS = 3
CONFIG = """\
# A flow from A to B. MirrorMaker 2 reads the same file.
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}
A->B.enabled = true
A->B.topics = .*
# Each cluster has one broker.
replication.factor = 1
ferry.internal.topics.replication.factor = 1
# Remove the # to let Airflow run the flow every ten minutes:
# A->B.ferry.schedule = */10 * * * *
"""


@dataclass(frozen=True)
class SandboxStatus:
    """The addresses of the two clusters. Empty: not running."""

    directory: str
    config: str
    source: str
    target: str
    source_pid: int
    target_pid: int


def up(directory: Path) -> SandboxStatus:
    """Start the clusters that do not run, with their data; they outlive the caller. A config that names these clusters is kept."""
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        with ThreadPoolExecutor(len(NAMES)) as pool:
            source, target = pool.map(lambda name: _running(directory / name, name), NAMES)
        config = directory / CONFIG_FILE
        text = config.read_text(encoding="latin-1") if config.exists() else ""
        if source.bootstrap not in text or target.bootstrap not in text:  # somebody may have edited the rest
            config.write_text(CONFIG.format(source=source.bootstrap, target=target.bootstrap), encoding="latin-1")
        return status(directory)


def fill(directory: Path, records: int) -> SampleSummary:
    """Add about `records` records to each of eight topics of A, and commit the middle of one as a group's position."""
    clusters = status(directory)
    if not clusters.source:
        raise SampleNotWritten(f"no cluster A runs in {clusters.directory}: ferry sandbox up starts it")
    written = load_sample_topics(clusters.source, seed=time.time_ns(), records=records)
    read_in_part(clusters.source, GROUP, GROUP_TOPIC)
    return written


def down(directory: Path) -> SandboxStatus:
    """Stop both clusters and remove their data and the config."""
    directory = directory.resolve()
    if directory.is_dir():
        with locked(directory):
            for name in NAMES:
                _remove(directory / name)
            (directory / CONFIG_FILE).unlink(missing_ok=True)
    return status(directory)


def status(directory: Path) -> SandboxStatus:
    directory = directory.resolve()
    clusters = (LocalBroker.load(directory / name) for name in NAMES)
    source, target = (cluster if cluster is not None and cluster.running else None for cluster in clusters)
    return SandboxStatus(
        directory=str(directory),
        config=str(directory / CONFIG_FILE) if (directory / CONFIG_FILE).exists() else "",
        source=source.bootstrap if source else "",
        target=target.bootstrap if target else "",
        source_pid=source.pid if source else 0,
        target_pid=target.pid if target else 0,
    )


def _running(directory: Path, name: str) -> LocalBroker:
    cluster = LocalBroker.load(directory)
    if cluster is None:
        _remove(directory)  # what an interrupted first start left
        return LocalBroker.start(directory, name)
    if cluster.running and not any(cluster.answers() for _ in range(LOOKS)):  # an interrupted start, or a paused broker
        cluster.stop()
    if not cluster.running:
        cluster.run()
    return cluster


def _remove(directory: Path) -> None:
    if cluster := LocalBroker.load(directory):
        cluster.stop()
    kill_all(directory / PROPERTIES_FILE)  # an interrupted format, or a broker whose state file was removed by hand
    shutil.rmtree(directory, ignore_errors=True)
