"""Appending single records to Ferry's topics outside a lane: reports and acknowledgements, about which no data is decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer

from ferry.errors import ClusterUnreachable

if TYPE_CHECKING:
    from ferry.config import Cluster

# Worth waiting for a leader election, not more.
WRITE_SECONDS = 30.0


def append_records(cluster: Cluster, topic: str, records: Iterable[tuple[bytes, bytes]]) -> None:
    """Append (key, value) records; returns when all replicas have them. ClusterUnreachable when they cannot be written."""
    from ferry.config import ClientRole  # noqa: PLC0415 - see InternalTopicReader

    # Not idempotent: asking for a producer id costs half a second, and a record that stands there twice says the same.
    settings = {**cluster.librdkafka(ClientRole.PRODUCER), "acks": "all", "linger.ms": 0}
    problems: list[str] = []
    producer = Producer(settings)
    try:
        for key, value in records:
            producer.produce(topic, key=key, value=value, on_delivery=lambda error, _: problems.append(error.str()) if error else None)
        left = producer.flush(WRITE_SECONDS)
    except KafkaException as problem:
        raise ClusterUnreachable(f"cluster {cluster.alias}: {topic}: {problem.args[0].str()}") from problem
    if left or problems:
        reason = problems[0] if problems else f"no answer in {WRITE_SECONDS:.0f} s"
        raise ClusterUnreachable(f"cluster {cluster.alias}: {topic} takes no records: {reason}")
