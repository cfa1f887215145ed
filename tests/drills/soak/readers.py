"""Readers of both sides while copying goes on: read_committed librdkafka consumers, from the beginning of every partition of a soak."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from tests.drills.histories.model import Place, Poll, Seen
from tests.drills.soak.stamps import Content, read_stamp
from tests.drills.soak.topics import OURS

POLL_RECORDS = 1_000
POLL_SECONDS = 0.2
LOOK_SECONDS = 3.0
ANSWER_SECONDS = 10.0
# What has not come by then, although nothing writes any more, does not come.
CATCH_UP_SECONDS = 120.0
# These would leave a gap in what is read; all others pass.
FATAL = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._FATAL})


class Reader(threading.Thread):
    """One reader of the topics that a soak made, or of their remote topics, which begin with `prefix`. Adds to `polls`.

    `problems` are what should never happen to one.
    """

    def __init__(self, name: str, bootstrap: str, prefix: str, polls: list[Poll]) -> None:
        super().__init__(name=name, daemon=True)
        self._prefix, self._polls = prefix, polls
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"reader-{name}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                "topic.metadata.refresh.interval.ms": 5_000,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        self._assigned: set[Place] = set()
        self._stopped = threading.Event()
        self._looked = 0.0
        self._at: dict[Place, int] = {}
        self._places: dict[Place, Place] = {}
        self.records = 0
        self.problems: list[str] = []

    def run(self) -> None:
        """Until told to stop."""
        while not self._stopped.is_set():
            if time.monotonic() > self._looked + LOOK_SECONDS:
                self._look()
            self._take()
        self._consumer.close()

    def finish(self, ends: Mapping[Place, int]) -> None:
        """Stop once it has read up to the last stable offsets of the partitions.

        Whoever asks has asked somebody else for them: a consumer that waits for records is slow to answer.
        """
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while (behind := self._behind(ends)) and time.monotonic() < deadline and self.is_alive():
            time.sleep(0.3)
        if behind:
            self.problems.append(f"reader {self.name} did not get to the end: {behind[:3]}")
        self._stopped.set()
        self.join()

    def _look(self) -> None:
        """Take new partitions from their beginning."""
        self._looked = time.monotonic()
        try:
            topics = self._consumer.list_topics(timeout=ANSWER_SECONDS).topics
        except KafkaException:
            return
        found = {(name, number) for name, topic in topics.items() if name.startswith(self._prefix + OURS) for number in topic.partitions}
        new = sorted(found - self._assigned)
        if new:
            self._consumer.incremental_assign([TopicPartition(*place, 0) for place in new])
            self._assigned |= found

    def _take(self) -> None:
        by_place: defaultdict[Place, list[Seen]] = defaultdict(list)
        for message in self._consumer.consume(POLL_RECORDS, POLL_SECONDS):
            error = message.error()
            if error is not None:
                self._note(message, error)
                continue
            content = Content(message.key(), message.value(), tuple(message.headers() or ()), message.timestamp()[1])
            place = (message.topic(), message.partition())
            self._at[place] = message.offset() + 1
            seen = read_stamp(message.offset(), content)
            if seen.sent_to is not None:  # one object for all records of a partition
                seen = seen._replace(sent_to=self._places.setdefault(seen.sent_to, seen.sent_to))
            by_place[place].append(seen)
            self.records += 1
        for (topic, partition), records in by_place.items():
            self._polls.append(Poll(self.name, (topic.removeprefix(self._prefix), partition), tuple(records)))

    def _note(self, message: Message, error: KafkaError) -> None:
        if error.code() == KafkaError._PARTITION_EOF:  # behind the last marker too
            self._at[message.topic(), message.partition()] = message.offset()
        elif error.code() in FATAL:
            self.problems.append(f"reader {self.name}: {message.topic()}-{message.partition()}: {error}")

    def _behind(self, ends: Mapping[Place, int]) -> list[str]:
        at = dict(self._at)
        return [f"{place[0]}-{place[1]} ({at.get(place, 0)} of {end})" for place, end in ends.items() if end > at.get(place, 0)]
