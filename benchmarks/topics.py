"""Topics of the benchmark on one cluster of one broker: made, removed, and measured by their last stable offsets.

Ends are asked over a connection of its own, one small request for all partitions: a sample costs the brokers next to nothing, and a topic
that does not exist yet is simply at 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Self

from confluent_kafka.admin import AdminClient, NewTopic
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from benchmarks.connection import ANSWER_SECONDS, Connection, encode

# Flexible, with an isolation level; known to every broker since 2.8.
LIST_OFFSETS_VERSION = 7
LATEST = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
# A new topic's partitions get their leader on the broker a moment after the controller made them.
READY_SECONDS = 60.0
_POLL_SECONDS = 0.02

NO_CONFIG: Mapping[str, str] = MappingProxyType({})

Partition = tuple[str, int]


class Ends:
    """Asks one broker for the last stable offsets of some partitions, or for their high watermarks."""

    def __init__(self, bootstrap: str, partitions: Iterable[Partition], *, committed: bool = True) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        self._request = encode(_latest(by_topic, READ_COMMITTED if committed else READ_UNCOMMITTED))
        self._connection = Connection(bootstrap)

    def read(self) -> dict[Partition, int]:
        """The end (exclusive) of each partition that exists and has a leader."""
        answer = self._connection.ask(self._request, ListOffsetsResponse, LIST_OFFSETS_VERSION)
        return {
            (topic.name, part.partition_index): part.offset for topic in answer.topics for part in topic.partitions if part.error_code == 0
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.__exit__(kind, error, trace)


def _latest(by_topic: dict[str, list[int]], isolation_level: int) -> Any:
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition
    return ListOffsetsRequest(
        version=LIST_OFFSETS_VERSION,
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[
            topic(
                name=name, partitions=[partition(partition_index=number, current_leader_epoch=-1, timestamp=LATEST) for number in numbers]
            )
            for name, numbers in by_topic.items()
        ],
    )


class Topics:
    """Creates, removes and counts topics of one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 4})

    def create(self, names: list[str], partitions: int, config: Mapping[str, str] = NO_CONFIG) -> None:
        """Create them and wait until every partition can be written to. TimeoutError when one cannot within READY_SECONDS."""
        for future in self._admin.create_topics([NewTopic(name, partitions, 1, config=dict(config)) for name in names]).values():
            future.result()
        wanted = [(name, partition) for name in names for partition in range(partitions)]
        deadline = time.monotonic() + READY_SECONDS
        with Ends(self.bootstrap, wanted) as ends:
            while len(ends.read()) < len(wanted):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{names[0]} and others have no leaders after {READY_SECONDS:.0f} s")
                time.sleep(_POLL_SECONDS)

    def names(self) -> list[str]:
        """All topics there are."""
        return sorted(self._admin.list_topics(timeout=ANSWER_SECONDS).topics)

    def delete(self, names: list[str]) -> None:
        """Remove them; KafkaException when the broker refuses."""
        if names:
            for future in self._admin.delete_topics(names).values():
                future.result()
