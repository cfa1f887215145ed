"""The Spark job of the example: reads the offset ranges that runs of Ferry have just copied, and counts records by key.

    spark-submit count_refreshed.py SERVERS OUTPUT FACTS

FACTS is a JSON list of events' extras. Each becomes one file in OUTPUT, named after run and topic: the same facts give the same file, so
that a repeated run changes nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import SparkContext


def read_range(servers: str, topic: str, partition: int, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Key and 1 for each committed record with an offset in `[start, end)`."""
    # In the task: Spark sends this function to its workers by value, and a class of a C library does not travel that way.
    from confluent_kafka import Consumer, KafkaError, TopicPartition  # noqa: PLC0415

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "count-refreshed",  # nothing is committed
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",  # records that expired meanwhile are an error, not a smaller count
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, start)])
        while True:
            message = consumer.poll(30.0)
            if message is None:
                raise TimeoutError(f"{topic}-{partition}: nothing came for 30 s before offset {end}")
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's public name
                raise RuntimeError(f"{topic}-{partition}: {error}")
            # The end of what can be read counts too, once it is reached: compaction may have removed the last record.
            if message.offset() >= end:
                return
            if error is not None:  # before `end`: a transaction of somebody else is open there, and will end
                continue
            yield (message.key() or b"").decode(errors="backslashreplace"), 1
            if message.offset() == end - 1:
                return
    finally:
        consumer.close()


def count(context: SparkContext, servers: str, facts: dict[str, Any]) -> dict[str, int]:
    """Records by key of what one run copied of one topic; one task for each partition."""
    if facts["partitions_left_out"]:
        raise ValueError(f"{facts['remote_topic']} has more partitions than an event holds")
    ranges = [(partition, start, end) for partition, _, _, start, end, _ in facts["partitions"]]
    topic = facts["remote_topic"]
    read = context.parallelize(ranges, len(ranges)).flatMap(lambda place: read_range(servers, topic, *place))
    return dict(read.reduceByKey(lambda one, other: one + other).collect())


if __name__ == "__main__":
    servers, output, events = sys.argv[1:]
    with SparkContext(appName="count refreshed") as spark:
        for event in json.loads(events):
            name = f"{event['run_id']}.{event['remote_topic']}.json".replace(":", "_").replace("/", "_")
            Path(output).mkdir(parents=True, exist_ok=True)
            Path(output, name).write_text(json.dumps(count(spark, servers, event), sort_keys=True), encoding="utf-8")
