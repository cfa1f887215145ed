"""Topics of a simulated cluster: their ids, configs and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from tests.simulation.cleaning import compact
from tests.simulation.partition import NO_LEADER, Partition
from tests.simulation.segments import NO_BOUND, SegmentLimits
from tests.simulation.topic_configs import AHEAD, AHEAD_BEFORE, OF_TOPIC, Shown

GROUPS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
INTERNAL = frozenset({GROUPS_TOPIC, TRANSACTIONS_TOPIC})
LONGEST_NAME = 249
NO_ID = UUID(int=0)


class Topic:
    """One topic. `config`: the entries that it sets itself. `defaults`: those of the brokers, by the names of all entries."""

    def __init__(
        self,
        name: str,
        topic_id: UUID,
        assignment: Sequence[tuple[int, ...]],
        config: dict[str, str],
        defaults: Mapping[str, Shown],
    ) -> None:
        self.name, self.topic_id, self.config, self._defaults = name, topic_id, config, defaults
        self._limits = SegmentLimits()
        self.partitions = [Partition(name, topic_id, index, replicas, self._limits) for index, replicas in enumerate(assignment)]
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
        new = enumerate(assignment, len(self.partitions))
        self.partitions += [Partition(self.name, self.topic_id, index, replicas, self._limits) for index, replicas in new]

    def set_config(self, config: dict[str, str]) -> None:
        """Replace the entries that the topic sets itself."""
        self.config = config
        self._read_config()

    def value(self, name: str) -> str:
        """The entry in force."""
        return self.shown(name)[0]

    def shown(self, name: str) -> Shown:
        """The entry in force, and where it comes from."""
        return (self.config[name], OF_TOPIC) if name in self.config else self._defaults[name]

    def all_shown(self) -> dict[str, Shown]:
        """All entries in force."""
        return {name: self.shown(name) for name in self._defaults}

    def retain(self, now: int) -> None:
        """Retention and compaction by each leader, as of `now`: a broker does both from time to time (LogManager, LogCleaner).

        Followers delete what lies before the leader's start.
        """
        policy, age, size = (self.value(name) for name in ("cleanup.policy", "retention.ms", "retention.bytes"))
        deletes = "delete" in policy
        since, largest = now - int(age) if deletes and int(age) >= 0 else 0, int(size) if deletes and int(size) >= 0 else NO_BOUND
        for partition in self.partitions:
            if partition.led.leader != NO_LEADER:
                if self.is_compacted:
                    compact(partition.log, partition.log.segments.bases[-1])
                partition.log.retain(since, largest)
                partition.replicate()
                for log in partition.logs.values():
                    log.retain(0, NO_BOUND)

    def _read_config(self) -> None:
        """What the append of each batch needs."""
        self.largest_batch = int(self.value("max.message.bytes"))
        self.is_compacted = "compact" in self.value("cleanup.policy")
        self.keeps_append_time = self.value("message.timestamp.type") == "LogAppendTime"
        self.latest_ahead = int(self.value(AHEAD if AHEAD in self._defaults else AHEAD_BEFORE))
        self.least_in_sync = int(self.value("min.insync.replicas"))
        self._limits.bytes, self._limits.milliseconds = int(self.value("segment.bytes")), int(self.value("segment.ms"))
        self.elects_unclean = self.value("unclean.leader.election.enable") == "true"


def as_decoded(topic_id: UUID | None) -> UUID | None:
    """The id as kafka-python decodes it: None stands for the one of no topic."""
    return None if topic_id == NO_ID else topic_id


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
