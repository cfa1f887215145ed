"""The demo's `mm2.properties`."""

from __future__ import annotations

from pathlib import Path

from ferry.sandbox.mm2_properties import write_flow_config
from ferry.sandbox.pair import SandboxStatus


def write_demo_config(path: Path, clusters: SandboxStatus) -> Path:
    """A flow A->B over the sandbox clusters, run by hand; the path."""
    return write_flow_config(path, clusters.source, clusters.target)
