"""Topics of a simulated cluster: their ids, configs and partitions, and Kafka's defaults of topic configs (LogConfig.java, 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from tests.simulation.partition import Partition

GROUPS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
INTERNAL = frozenset({GROUPS_TOPIC, TRANSACTIONS_TOPIC})
LONGEST_NAME = 249
NO_ID = UUID(int=0)

DEFAULTS = {
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


# A default, and where it comes from (DescribeConfigsResponse.ConfigSource).
Default = tuple[str, int]
OF_TOPIC, OF_ALL_BROKERS, OF_BROKER_FILE, OF_KAFKA = 1, 3, 4, 5


class Topic:
    """One topic. `config`: the entries that it sets itself. `defaults`: those of the brokers."""

    def __init__(
        self,
        name: str,
        topic_id: UUID,
        assignment: Sequence[tuple[int, ...]],
        config: dict[str, str],
        defaults: Mapping[str, Default] = MappingProxyType({}),
    ) -> None:
        self.name, self.topic_id, self.config, self._defaults = name, topic_id, config, defaults
        self.partitions = [Partition(name, topic_id, index, replicas) for index, replicas in enumerate(assignment)]
        self._read_config()

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL

    def leave_sync(self, brokers: Iterable[int]) -> None:
        """Of new partitions: these brokers are down."""
        for partition in self.partitions:
            for broker in brokers:
                partition.leave_sync(broker)

    def grow(self, assignment: Sequence[tuple[int, ...]]) -> None:
        """Add partitions with these replicas."""
        first = len(self.partitions)
        self.partitions += [Partition(self.name, self.topic_id, first + more, replicas) for more, replicas in enumerate(assignment)]

    def set_config(self, config: dict[str, str]) -> None:
        """Replace the entries that the topic sets itself."""
        self.config = config
        self._read_config()

    def value(self, name: str) -> str:
        """The entry in force."""
        return self.shown(name)[0]

    def shown(self, name: str) -> Default:
        """The entry in force, and where it comes from."""
        if name in self.config:
            return self.config[name], OF_TOPIC
        return self._defaults.get(name, (DEFAULTS[name], OF_KAFKA))

    def _read_config(self) -> None:
        """What the append of each batch needs."""
        self.largest_batch = int(self.value("max.message.bytes"))
        self.is_compacted = "compact" in self.value("cleanup.policy")
        self.keeps_append_time = self.value("message.timestamp.type") == "LogAppendTime"
        self.latest_ahead = int(self.value("message.timestamp.after.max.ms"))
        self.least_in_sync = int(self.value("min.insync.replicas"))
        self.elects_unclean = self.value("unclean.leader.election.enable") == "true"


def as_decoded(topic_id: UUID | None) -> UUID | None:
    """The id as kafka-python decodes it: None stands for the one of no topic."""
    return None if topic_id == NO_ID else topic_id


def config_problem(name: str, value: str) -> str:
    """Why a broker refuses a topic config; empty: it takes it."""
    if name not in DEFAULTS:
        return f"Unknown topic config name: {name}"
    if name in _CHOICES and not _CHOICES[name].issuperset(value.split(",")):
        return f"Invalid value {value} for configuration {name}"
    if name not in _TEXTS and DEFAULTS[name].lstrip("-").isdigit() and not value.lstrip("-").isdigit():
        return f"Invalid value {value} for configuration {name}: Not a number"
    return ""


def name_problem(name: str) -> str:
    """Why a broker refuses a topic's name (Topic.validate); empty: it takes it."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > LONGEST_NAME:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {LONGEST_NAME}"
    if not all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in name):
        return f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return ""
