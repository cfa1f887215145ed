"""The releases of Kafka that Ferry is tried against, as source and as target (docs/compatibility.md), and how a broker of each is run.

Jars come from Maven Central, so a release is one that still has them there. Before 3.3 (KIP-833) KRaft is no broker to rely on: such
releases run with ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferry.sandbox.jars import KAFKA_VERSION, LOGGING, Coordinate

OLDEST, NEWEST = "2.8.2", "4.4.0"
RELEASES: Sequence[str] = (OLDEST, "3.9.1", "4.0.0", KAFKA_VERSION, NEWEST)
FIRST_WITH_KRAFT = (3, 3)


def broker_coordinates(version: str) -> Sequence[Coordinate]:
    """The coordinates of a broker of that release, `kafka_2.13`."""
    return ("org.apache.kafka", "kafka_2.13", version), LOGGING


def needs_zookeeper(version: str) -> bool:
    """Whether a broker of that release keeps its metadata in ZooKeeper."""
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) < FIRST_WITH_KRAFT
