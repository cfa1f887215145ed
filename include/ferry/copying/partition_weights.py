"""How many bytes a partition has left to send, estimated: lanes and Spark tasks are balanced by it.

The ledger's head of a partition knows how large the records were that were copied last. For a first copy the source's log tells: its size
(DescribeLogDirs) divided by its offsets. Where neither is known, the partition is like the others of its topic, or like the others of the
run.

The size is without what a broker holds in remote storage only. So a log that is mostly there looks lighter than it is, and its lane may end
last. To tell it, Ferry would have to ask for the local start of each log too, which older brokers do not know.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from kafka.protocol.admin import DescribeLogDirsRequest

from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import DESCRIBE_LOG_DIRS, Action
from ferry.clusters.net.partitions import TopicPartition, grouped, partitions_of
from ferry.clusters.net.shared_connection import ask_cluster
from ferry.config import Cluster
from ferry.copying.partition_plan import PartitionPlan
from ferry.errors import FerryError

# If nothing is known of any partition: then only the offsets tell partitions apart.
UNKNOWN_BYTES = 1_000.0
# Fewer offsets to copy, of all partitions that no head tells of, are no reason to ask the source for the sizes of its logs.
FEW_OFFSETS = 10_000
# A broker that hangs must not hold up what asks: nobody needs its answer. Its connection stays open, because others may use it.
ANSWER_SECONDS = 3.0


def read_bytes_an_offset(source: Cluster, plans: Sequence[PartitionPlan]) -> dict[TopicPartition, float]:
    """By partition, for each offset that is left to copy. Asks the source only if it matters, and does without an answer."""
    asked = without_size(plans)
    sizes: Mapping[TopicPartition, int] = {}
    with suppress(FerryError):
        sizes = ask_cluster(source, log_sizes, asked) if asked else sizes
    return bytes_an_offset(plans, sizes)


def without_size(plans: Iterable[PartitionPlan]) -> list[TopicPartition]:
    """The partitions of which no head tells how large records are; none if all of them together have little to copy."""
    untold = [plan for plan in plans if not _told(plan)]
    return [plan.facts.key for plan in untold] if sum(plan.offsets for plan in untold) >= FEW_OFFSETS else []


def bytes_an_offset(plans: Iterable[PartitionPlan], log_sizes: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
    """By partition, for each offset that is left to copy. `log_sizes` in bytes."""
    known: dict[TopicPartition, float] = {}
    for plan in plans:
        offsets = plan.facts.stable_end - plan.facts.log_start
        known[plan.facts.key] = _told(plan) or (log_sizes.get(plan.facts.key, 0) / offsets if offsets > 0 else 0.0)
    by_topic = {topic: _mean(found) for topic, found in grouped((key.topic, each) for key, each in known.items()).items()}
    overall = _mean(known.values()) or UNKNOWN_BYTES
    return {key: each or by_topic[key.topic] or overall for key, each in known.items()}


async def log_sizes(connection: ClusterConnection, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The size at the leader, without partitions whose leader does not tell it, for example because the user may not ask."""
    topic, leaders = DescribeLogDirsRequest.DescribableLogDirTopic, connection.leaders
    with suppress(RequestNotSent, RequestLost):
        await leaders.known({key.topic for key in partitions})
    asked = []
    for node, keys in leaders.by_node(partitions).items():
        topics = [topic(topic=name, partitions=numbers) for name, numbers in grouped(keys).items()]
        asked.append(connection.submit(DescribeLogDirsRequest(topics=topics), node))
    found: dict[TopicPartition, int] = {}
    deadline = time.monotonic() + ANSWER_SECONDS
    for future in [future for future in asked if await connection.loop.done_by(deadline, future)]:
        with suppress(RequestNotSent, RequestLost):
            told = (await connection.answer_to(future)).results
            for directory in (one for one in told if DESCRIBE_LOG_DIRS.action(one.error_code) is Action.GO_ON):
                for key, part in partitions_of(directory.topics or ()):
                    found[key] = max(found.get(key, 0), part.partition_size)
    return found


def _told(plan: PartitionPlan) -> int:
    return plan.facts.head.record_bytes if plan.facts.head is not None else 0


def _mean(values: Iterable[float]) -> float:
    found = [value for value in values if value]
    return sum(found) / len(found) if found else 0.0
