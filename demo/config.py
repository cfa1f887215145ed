"""The demo's `mm2.properties`."""

from __future__ import annotations

from pathlib import Path

from ferry.sandbox.pair import SandboxStatus, write_flow_config

GROUPS = """\
# Consumer groups go on at B where they stood at A; in every run of the demo.
A->B.sync.group.offsets.enabled = true
A->B.sync.group.offsets.interval.seconds = 0
"""


def write_demo_config(path: Path, clusters: SandboxStatus) -> Path:
    """A flow A->B over the sandbox clusters, run by hand, with its consumer groups; the path."""
    write_flow_config(path, clusters.source, clusters.target)
    with path.open("a", encoding="latin-1") as file:
        file.write(GROUPS)
    return path
