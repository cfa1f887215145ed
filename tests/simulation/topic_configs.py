"""The configs of topics that each release of Kafka knows, their defaults (LogConfig.java), and which values a broker refuses."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.releases import Release

_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
_TEXTS = {"compression.type", "cleanup.policy", "message.timestamp.type", "min.cleanable.dirty.ratio"}
_CHOICES = {
    "cleanup.policy": {"delete", "compact"},
    "compression.type": {"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"},
    "message.timestamp.type": {"CreateTime", "LogAppendTime"},
    "unclean.leader.election.enable": {"true", "false"},
}

# An entry, and where it comes from (DescribeConfigsResponse.ConfigSource).
Shown = tuple[str, int]
OF_TOPIC, OF_ALL_BROKERS, OF_BROKER_FILE, OF_KAFKA = 1, 3, 4, 5
# How far the time of a record may be ahead of the broker's clock; before 3.6 (KIP-937) one entry said it for both directions.
AHEAD, AHEAD_BEFORE = "message.timestamp.after.max.ms", "message.timestamp.difference.max.ms"
_LEAST_IN_SYNC = "min.insync.replicas"
_NO_LIMIT = str((1 << 63) - 1)
# What other releases than 4.3 have, and None for what they do not have.
_OTHERS: Mapping[Release, Mapping[str, str | None]] = {
    (2, 8): {
        AHEAD: None,
        AHEAD_BEFORE: _NO_LIMIT,
        "compression.gzip.level": None,
        "compression.lz4.level": None,
        "compression.zstd.level": None,
        "local.retention.bytes": None,
        "local.retention.ms": None,
        "message.downconversion.enable": "true",
        "message.format.version": "2.8-IV1",
        "message.timestamp.before.max.ms": None,
        "remote.log.copy.disable": None,
        "remote.log.delete.on.disable": None,
        "remote.storage.enable": None,
    },
    (3, 9): {
        AHEAD: _NO_LIMIT,
        AHEAD_BEFORE: _NO_LIMIT,
        "message.downconversion.enable": "true",
        "message.format.version": "3.0-IV1",
    },
    (4, 4): {
        "errors.deadletterqueue.group.enable": "false",
        "max.decompressed.message.bytes": "2147483639",
        "remote.copy.lag.bytes": "-1",
        "remote.copy.lag.ms": "0",
    },
}


def topic_defaults(release: Release) -> dict[str, Shown]:
    """All entries that a topic of this release has, with Kafka's own defaults."""
    found = {**_DEFAULTS, **_OTHERS.get(release, {})}
    shown = {name: (value, OF_KAFKA) for name, value in sorted(found.items()) if value is not None}
    # Where the controller knows which replicas may be elected (KIP-966), it keeps this entry for all brokers.
    return {**shown, _LEAST_IN_SYNC: ("1", OF_ALL_BROKERS)} if release >= (4, 1) else shown


def config_problem(known: Mapping[str, Shown], name: str, value: str) -> str:
    """Why a broker refuses a topic config; empty: it takes it. `known`: of this release."""
    if name not in known:
        return f"Unknown topic config name: {name}"
    if name in _CHOICES and not _CHOICES[name].issuperset(value.split(",")):
        return f"Invalid value {value} for configuration {name}"
    if name not in _TEXTS and known[name][0].lstrip("-").isdigit() and not value.lstrip("-").isdigit():
        return f"Invalid value {value} for configuration {name}: Not a number"
    return ""
