"""Topics, as an operator deletes and widens them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewPartitions

# A broker that is busy deletes, or makes partitions, in seconds.
DONE_SECONDS = 60.0
ANSWER_SECONDS = 30.0


def delete_topics(settings: Mapping[str, str], *topics: str) -> None:
    """Delete the topics and wait until the cluster no longer names them. `settings`: librdkafka's. KafkaException, TimeoutError.

    The controller answers before the brokers have forgotten a topic: whoever asks them meanwhile may find it as if it was there.
    """
    if not topics:
        return
    client = AdminClient(dict(settings))
    for future in client.delete_topics(list(topics)).values():
        future.result(ANSWER_SECONDS)
    deadline = time.monotonic() + DONE_SECONDS
    while left := set(topics) & set(client.list_topics(timeout=ANSWER_SECONDS).topics):
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {DONE_SECONDS:.0f} s there are still {', '.join(sorted(left))}")
        time.sleep(0.02)


def grow_topic(settings: Mapping[str, str], topic: str, partitions: int) -> None:
    """Give the topic so many partitions, and wait until the cluster names them. KafkaException, TimeoutError.

    The controller answers before the brokers know the new partitions: a producer that asks them meanwhile drops its records.
    """
    client = AdminClient(dict(settings))
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result(ANSWER_SECONDS)
    deadline = time.monotonic() + DONE_SECONDS
    while (seen := len(client.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions)) < partitions:
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {DONE_SECONDS:.0f} s {topic} has {seen} of {partitions} partitions")
        time.sleep(0.02)
