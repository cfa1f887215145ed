"""The `mm2.properties` of a flow A->B over two one-broker clusters."""

from __future__ import annotations

from pathlib import Path

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


def write_flow_config(path: Path, source: str, target: str) -> Path:
    """Write it for two bootstrap addresses; the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONFIG.format(source=source, target=target), encoding="latin-1")
    return path


def names_clusters(path: Path, source: str, target: str) -> bool:
    """Whether a config is there that names these two addresses, however it was edited since."""
    if not path.exists():
        return False
    text = path.read_text(encoding="latin-1")
    return source in text and target in text
