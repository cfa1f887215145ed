"""Clusters of every release, one as source and one as target, started when first asked for; and what a pair of them goes through."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.both_clusters import FOREVER
from tools.kafka import SandboxCluster
from tools.kafka.releases import NEWEST

# Fourteen clusters share the machine.
JAVA_OPTIONS = ("-Xms96m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PROPERTIES: Mapping[str, str] = {**FOREVER, "allow.everyone.if.no.acl.found": "true"}


class Behind(NamedTuple):
    """A cluster that has less than its brokers offer, as between the two halves of an upgrade: its release, and what holds it back."""

    release: str
    properties: Mapping[str, str] = {}
    features: tuple[str, ...] = ()


# The last release of the protocol between brokers that has no topic ids, and the oldest level of a cluster with KRaft (3.3-IV3).
OLD_PROTOCOL, OLD_LEVEL = "3.4.1-as-2.7", f"{NEWEST}-as-3.3"
BEHIND = {
    OLD_PROTOCOL: Behind("3.4.1", {"inter.broker.protocol.version": "2.7"}),
    OLD_LEVEL: Behind(NEWEST, features=("metadata.version=7",)),
}


class Stage:
    """The clusters by role and release."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running = ExitStack()
        self._clusters: dict[tuple[str, str], SandboxCluster] = {}

    def cluster(self, role: str, version: str) -> SandboxCluster:
        """`role`: source or target. `version`: a release, or one of BEHIND. Everybody may do everything, and ACLs are kept."""
        if (role, version) not in self._clusters:
            name, kind = f"{role}-{version}", BEHIND.get(version, Behind(version))
            cluster = SandboxCluster.start(
                self._directory / name,
                name,
                properties={**PROPERTIES, **kind.properties},
                features=kind.features,
                java_options=JAVA_OPTIONS,
                authorizer=True,
                version=kind.release,
            )
            self._clusters[role, version] = self._running.enter_context(cluster)
        return self._clusters[role, version]

    def close(self) -> None:
        """Stop all."""
        self._running.close()
