"""Jars of Kafka beside the broker's: MirrorMaker 2, Kafka's command-line tools, and Kafka Streams."""

from __future__ import annotations

from pathlib import Path

from ferry.sandbox.jars import KAFKA_VERSION, LOGGING, resolve_jars

MIRROR_MAKER = (
    ("org.apache.kafka", "connect-mirror", KAFKA_VERSION),
    ("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    LOGGING,
)
TOOLS = (("org.apache.kafka", "kafka-tools", KAFKA_VERSION), LOGGING)


def mirror_maker_jars() -> Path:
    """The directory with the jars of MirrorMaker 2."""
    return resolve_jars("mirror", MIRROR_MAKER)


def tools_jars() -> Path:
    """The directory with the jars of Kafka's command-line tools."""
    return resolve_jars("tools", TOOLS)


def streams_jars(version: str = KAFKA_VERSION) -> Path:
    """The directory with the jars of Kafka Streams."""
    return resolve_jars("streams", (("org.apache.kafka", "kafka-streams", version), LOGGING))
