"""Clusters of every release, one as source and one as target, started when first asked for; and what a pair of them goes through."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.both_clusters import FOREVER
from tools.kafka import SandboxCluster

# Eight clusters share the machine.
JAVA_OPTIONS = ("-Xms96m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PROPERTIES: Mapping[str, str] = {**FOREVER, "allow.everyone.if.no.acl.found": "true"}


class Stage:
    """The clusters by role and release."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running = ExitStack()
        self._clusters: dict[tuple[str, str], SandboxCluster] = {}

    def cluster(self, role: str, version: str) -> SandboxCluster:
        """`role`: source or target. Everybody may do everything, and ACLs are kept."""
        if (role, version) not in self._clusters:
            name = f"{role}-{version}"
            cluster = SandboxCluster.start(
                self._directory / name, name, properties=PROPERTIES, java_options=JAVA_OPTIONS, authorizer=True, version=version
            )
            self._clusters[role, version] = self._running.enter_context(cluster)
        return self._clusters[role, version]

    def close(self) -> None:
        """Stop all."""
        self._running.close()
