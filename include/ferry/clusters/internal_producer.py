"""Appends single records to internal topics outside a lane: reports, acknowledgements, MM2's records. None of them decides about data."""

from collections.abc import Iterable
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Producer

from ferry.clusters.failures import explained, made
from ferry.clusters.kept import lent
from ferry.config import ClientRole, Cluster
from ferry.errors import ClusterUnreachable

# As long as a leader election may take.
WRITE_SECONDS = 60.0
# After this Ferry gives up a leader that hangs (librdkafka's default is a minute), and asks the new one.
ANSWER_MILLISECONDS = 10_000


def append_records(
    cluster: Cluster,
    topic: str,
    records: Iterable[tuple[bytes, bytes | None]],
    *,
    partition: int = -1,
    timestamp: int = 0,
    in_order: bool = False,
    seconds: float | None = None,
) -> None:
    """Append (key, value) records; returns when all replicas have them. ClusterUnreachable or NotAuthorized if they cannot be written.

    `partition` -1: by the key, as in Java's producer. `timestamp` in ms, 0: now. `in_order`: a retry must not change the order. `seconds`:
    how long to wait for a leader, by default WRITE_SECONDS.
    """
    problems: list[KafkaError] = []

    def note(error: KafkaError | None, _: object) -> None:
        if error is not None:
            problems.append(error)

    seconds = WRITE_SECONDS if seconds is None else seconds
    with lent("producer", cluster, lambda: _Appender(cluster, ClientRole.PRODUCER, in_order=in_order), in_order) as client:
        try:
            for key, value in records:
                client.producer.produce(topic, value, key, partition, timestamp=timestamp, on_delivery=note)
                client.producer.poll(0)
            left = client.producer.flush(seconds)
        except KafkaException as problem:
            # An idempotent producer asks for its id first, which takes Write on any topic (KIP-679).
            raise explained(cluster, f"writing to {topic}", problem.args[0], grant=f"Write on topic {topic}") from problem
        if problems:
            raise explained(cluster, f"writing to {topic}", problems[0], grant=f"Write on topic {topic}", role=ClientRole.PRODUCER)
        if left:
            raise ClusterUnreachable(f"cluster {cluster.alias}: {topic} takes no records: no answer in {seconds:.0f} s")


class _Appender:
    def __init__(self, cluster: Cluster, role: ClientRole, *, in_order: bool) -> None:
        settings = {
            "socket.timeout.ms": ANSWER_MILLISECONDS,
            **cluster.librdkafka(role),
            "acks": "all",
            "linger.ms": 0,
            "log_level": 2,
            # Idempotent only where it is needed: asking for a producer id costs half a second, and a record that stands there twice says
            # the same.
            "enable.idempotence": in_order,
            # Compaction works within a partition: what Java's clients wrote and is written here must lie in the same one.
            "partitioner": "murmur2_random",
        }
        self.producer = made(cluster, role, partial(Producer, settings))

    def close(self) -> None:
        """Nothing to do: every record was delivered or given up, and the client ends with its last reference."""
