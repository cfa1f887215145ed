"""The demo's `mm2.properties`."""

from __future__ import annotations

from pathlib import Path

from ferry.sandbox.pair import CONFIG, SandboxStatus

# Beside a schedule, Airflow's own Backfill can be used. Nobody wants runs of the demo at night, so nearly all are started by hand.
MORE = """\
A->B.ferry.schedule = 0 3 * * *
# Consumer groups go on at B where they stood at A; in every run of the demo.
A->B.sync.group.offsets.enabled = true
A->B.sync.group.offsets.interval.seconds = 0
"""


def write_demo_config(path: Path, clusters: SandboxStatus) -> Path:
    """A flow A->B over the sandbox clusters, with a run a day and its consumer groups; the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONFIG.format(source=clusters.source, target=clusters.target) + MORE, encoding="latin-1")
    return path
