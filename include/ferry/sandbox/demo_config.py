"""The demo's `mm2.properties`."""

from __future__ import annotations

from pathlib import Path

from ferry.sandbox.pair import SandboxStatus


def write_demo_config(path: Path, clusters: SandboxStatus) -> Path:
    """A flow A->B over the sandbox clusters, run by hand; the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "# The demo's flow. MirrorMaker 2 reads the same file.\n"
        "clusters = A, B\n"
        f"A.bootstrap.servers = {clusters.source}\n"
        f"B.bootstrap.servers = {clusters.target}\n"
        "A->B.enabled = true\n"
        "A->B.topics = .*\n"
        "replication.factor = 1\n"
        "# Remove the # to let Airflow run the flow every ten minutes:\n"
        "# A->B.ferry.schedule = */10 * * * *\n",
        encoding="latin-1",
    )
    return path
