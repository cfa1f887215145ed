"""One round of a read of internal topics: requests to the leaders of all its partitions, side by side.

A complete read also needs to know where it ends, and that nobody else leads the partitions now. Both questions go out beside the first
fetch, so they take no more time than the fetch alone. What a leader answered counts only if it is still the leader. Two brokers are asked
for the leaders: one that is cut off from the others still names itself.

The end comes from ListOffsets. The answer to a fetch names a high watermark too, but right after an election it may be lower than what
consumers have seen already; ListOffsets is refused until the leader knows the true one (KIP-207).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, TypeAlias
from uuid import UUID

import kafka.errors as kafka_errors
from confluent_kafka import KafkaError
from kafka.future import Future

from ferry import clock
from ferry.clusters.logs.fetching import Fetched, FetchPosition, fetch_request, fetched_partitions
from ferry.clusters.logs.offset_listing import LATEST, READ_UNCOMMITTED, Listed, submit_listing, take_listing
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.leaders import Leader, Leaders
from ferry.clusters.net.partitions import TopicPartition

# A topic's id, and the leader of a partition of it.
Led: TypeAlias = tuple[UUID | None, Leader]

# A leader that hangs is given up after this, and the new one is asked.
ANSWER_MILLISECONDS = 10_000
# No answer in time: from the broker itself, or from one that Ferry had to connect to first.
TIMED_OUT = (kafka_errors.RequestTimedOutError, kafka_errors.KafkaTimeoutError)
# The most bytes that all partitions of one broker may answer at once, unless that takes too long. A whole batch always comes.
ANSWER_BYTES = 8 << 20


class Told(NamedTuple):
    """What came back: an answer for each partition, high watermarks, and the topic's partitions, if its leaders were asked for anew."""

    fetched: Sequence[Fetched] = ()
    ends: Mapping[TopicPartition, int] = MappingProxyType({})
    partitions: Collection[int] = ()
    late: bool = False  # no leader answered a fetch, and one of them only because it took too long


@dataclass(frozen=True)
class FetchRound:
    """The requests of one round, and how long to wait for their answers."""

    positions: Mapping[TopicPartition, int]  # where to fetch from
    partition_bytes: int  # the most bytes of one partition's answer
    isolation: int  # Kafka's isolation level
    total_bytes: int = ANSWER_BYTES  # the most bytes that all partitions of one broker may answer
    wait: int = 0  # how many ms a broker may wait for records
    seconds: float = math.inf  # how long to wait for brokers
    ending: Collection[TopicPartition] = ()  # the partitions whose high watermarks are wanted
    # Ask for the leaders of the one topic too. A leader that was replaced, and does not know it, lacks the newest records.
    anew: bool = False
    # Leader epochs of the records before the positions, if known: then answers say whether the log has diverged.
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)

    @cached_property
    def topics(self) -> frozenset[str]:
        return frozenset(key.topic for key in self.positions)

    async def ask(self, connection: ClusterConnection) -> Told:
        """The answers, without the partitions whose leader is not known or does not answer in time."""
        leaders, loop, deadline = connection.leaders, connection.loop, clock.monotonic() + self.seconds
        learned = loop.start(leaders.known, self.topics)
        if not await loop.done_by(deadline, learned):
            return Told()
        with suppress(RequestNotSent, RequestLost):
            await learned
            asked_of = self._led(leaders)
            confirmed = loop.start(leaders.ask_two, self.topics) if self.anew else None
            asked_ends = submit_listing(connection, self.ending, (LATEST, READ_UNCOMMITTED, ANSWER_MILLISECONDS))
            (fetched, late), listed = await self._fetched(connection, deadline), dict[TopicPartition, Listed]()
            await take_listing(connection, asked_ends, listed)
            if confirmed is not None:
                await confirmed
            told = Told(fetched, {key: at.offset for key, at in listed.items()}, late=late)
            if self.anew:
                told = self._still_led(told, asked_of, leaders)
            told = told._replace(fetched=[*told.fetched, *self._refused(leaders, told.fetched)])
            answered = {key_of(part) for part in told.fetched if not part.error}
            leaders.forget({key.topic for key in self.positions if key not in answered})
            return told
        return Told()

    async def _fetched(self, connection: ClusterConnection, deadline: float) -> tuple[list[Fetched], bool]:
        """The answers, and `Told.late`."""
        submitted, found, late = list[tuple[list[FetchPosition], Future]](), list[Fetched](), False
        for node, keys in connection.leaders.by_node(self.positions).items():
            asked = [FetchPosition(*key, self.positions[key], self.epochs.get(key, -1)) for key in keys]
            request = fetch_request(
                asked,
                connection.leaders,
                total_bytes=self.total_bytes,
                partition_bytes=self.partition_bytes,
                isolation=self.isolation,
                wait_milliseconds=self.wait,
            )
            submitted.append((asked, connection.submit(request, node, ANSWER_MILLISECONDS)))
        for asked, future in submitted:
            if not await connection.loop.done_by(deadline, future) or isinstance(future.exception, TIMED_OUT):
                late = True
                continue
            with suppress(RequestNotSent, RequestLost):
                found += fetched_partitions(await connection.answer_to(future), asked, connection.leaders)
        return found, late and not found

    def _refused(self, leaders: Leaders, answered: Collection[Fetched]) -> list[Fetched]:
        """The partitions that were not `answered`, of topics whose leaders Metadata does not name, with its error.

        The answer to Metadata may come later than the answer to a fetch that was sent before. Another user of the connection may have sent
        it.
        """
        known = {key_of(part) for part in answered}
        codes = {topic: leaders.refused(topic) or KafkaError.UNKNOWN_TOPIC_OR_PART * leaders.is_missing(topic) for topic in self.topics}
        return [
            Fetched(FetchPosition(*key, position, -1), codes[key.topic], memoryview(b""), [], False, -1)
            for key, position in self.positions.items()
            if codes[key.topic] and key not in known
        ]

    def _led(self, leaders: Leaders) -> dict[TopicPartition, Led]:
        return {key: (leaders.topic_id(key.topic), leaders.of(*key)) for key in self.positions}

    def _still_led(self, told: Told, asked_of: Mapping[TopicPartition, Led], leaders: Leaders) -> Told:
        """`told` without the answers of brokers that no longer lead the partitions."""
        same = {key for key, led in self._led(leaders).items() if led == asked_of[key]}
        fetched = [part for part in told.fetched if part.error or key_of(part) in same]
        [topic] = self.topics
        return told._replace(
            fetched=fetched, ends={key: end for key, end in told.ends.items() if key in same}, partitions=leaders.partitions(topic)
        )


def key_of(part: Fetched) -> TopicPartition:
    return TopicPartition(part.asked.topic, part.asked.partition)
