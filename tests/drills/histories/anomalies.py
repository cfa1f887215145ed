"""The kinds of anomaly, after those of Jepsen's Kafka workload (jepsen-io/jepsen, tests/kafka.clj), and what a replicator adds to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What went wrong. `int-`: within one poll; without it, between two polls of one reader."""

    LOST = "lost-write"  # acknowledged and committed, below what was seen of its partition, never seen
    UNSEEN = "unseen"  # acknowledged and committed, beyond all that was seen, although everything should be copied
    DUPLICATE = "duplicate"  # one record at two target offsets
    ABORTED = "aborted-read"  # seen although it was refused or its transaction aborted (G1a)
    NEVER_SENT = "never-sent"  # seen although nobody sent it
    ALTERED = "altered"  # its checksum does not hold
    MISPLACED = "misplaced"  # seen in another partition than it was sent to
    TORN = "torn-transaction"  # of a transaction with an unknown outcome one part was copied and another not
    ORDER = "order"  # source order and target order of a partition differ
    PRODUCER_ORDER = "producer-order"  # two records of one producer stand the other way round than it sent them
    INCONSISTENT = "inconsistent-offset"  # two records were seen at one target offset
    POLL_SKIP = "poll-skip"
    INT_POLL_SKIP = "int-poll-skip"
    NONMONOTONIC = "nonmonotonic-poll"
    INT_NONMONOTONIC = "int-nonmonotonic-poll"


@dataclass(frozen=True)
class Anomaly:
    """One finding."""

    kind: Kind
    topic: str
    partition: int
    text: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.topic}-{self.partition}: {self.text}"


def counted(anomalies: Iterable[Anomaly]) -> dict[str, int]:
    """How many of each kind; kinds without any are there with 0."""
    found = Counter(anomaly.kind for anomaly in anomalies)
    return {kind.value: found[kind] for kind in Kind}
