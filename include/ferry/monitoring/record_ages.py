"""The ages of the first uncopied records, read from the source, bounded in time.

It never raises for a slow broker. The age is -1 if the record could not be read in time or has no time, or if the partition holds only
control records and holes.
"""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ferry.clusters.failures import made
from ferry.config import ClientRole, Flow

# A slow broker must not hang the command.
READ_SECONDS = 15.0
POLL_SECONDS = 0.2


def first_ages(flow: Flow, wanted: Mapping[tuple[str, int], int], seconds: float = READ_SECONDS) -> dict[tuple[str, int], float]:
    """Age in seconds of the first record at or after each partition's offset; -1: not known."""
    ages = dict.fromkeys(wanted, -1.0)
    if not wanted:
        return {}
    settings = {
        **flow.source.librdkafka(ClientRole.CONSUMER),
        "group.id": "ferry-status",
        "enable.auto.commit": False,
        # Uncopied offsets may hold no record: the end of the partition says that there is nothing to wait for.
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 20,
    }
    consumer: Consumer = made(flow.source, ClientRole.CONSUMER, lambda: Consumer(settings))
    left = set(wanted)
    try:
        consumer.assign([TopicPartition(topic, partition, offset) for (topic, partition), offset in wanted.items()])
        deadline = time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            message = consumer.poll(POLL_SECONDS)
            key = ("", -1) if message is None else (message.topic() or "", message.partition() or 0)
            if message is None or key not in left:
                continue
            error = message.error()
            if error is None:
                moment = message.timestamp()[1]
                # -1: the record has no time, 0: its time is in the future.
                ages[key] = -1.0 if moment < 0 else max(0.0, time.time() - moment / 1000)
            elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - a public name
                continue
            left.remove(key)
            consumer.pause([TopicPartition(*key)])
    except KafkaException:
        return ages
    finally:
        consumer.close()
    return ages
