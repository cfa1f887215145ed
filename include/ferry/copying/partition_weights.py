"""An estimate of the bytes that a partition has left to send: it balances lanes and Spark tasks.

The ledger's head of a partition holds the size of the records that were copied last. For a first copy Ferry divides the size of the
source's log (DescribeLogDirs) by its offsets. If neither is known, the partition counts like others of its topic, or of the run.

The size does not include segments that a broker holds only in remote storage. So a log that is mostly there looks lighter than it is, and
its lane may end last. To know better, Ferry would have to ask for the local start of each log too, which older brokers do not know.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from kafka.protocol.admin import DescribeLogDirsRequest

from ferry import clock
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import DESCRIBE_LOG_DIRS, Action
from ferry.clusters.net.partitions import TopicPartition, grouped, partitions_of
from ferry.clusters.net.shared_connection import ConnectedCluster
from ferry.copying.partition_plan import PartitionPlan
from ferry.errors import FerryError

# If no partition's size is known. Then only the offsets distinguish partitions.
UNKNOWN_BYTES = 1_000.0
# If all partitions without a size in their head have fewer offsets to copy, Ferry does not ask the source for the sizes of its logs.
FEW_OFFSETS = 10_000
# A broker that hangs must not delay the caller, which can do without the answer. Its connection stays open, because others may use it.
ANSWER_SECONDS = 3.0


def read_bytes_an_offset(source: ConnectedCluster, plans: Sequence[PartitionPlan]) -> dict[TopicPartition, float]:
    """By partition: bytes for each offset that is left to copy. Asks the source only if it matters, and can do without an answer."""
    asked = without_size(plans)
    sizes: Mapping[TopicPartition, int] = {}
    with suppress(FerryError):
        sizes = source.ask(log_sizes, asked) if asked else sizes
    return bytes_an_offset(plans, sizes)


def without_size(plans: Iterable[PartitionPlan]) -> list[TopicPartition]:
    """The partitions whose head has no size of records; none if all of them together have little to copy."""
    untold = [plan for plan in plans if not _told(plan)]
    return [plan.facts.key for plan in untold] if sum(plan.offsets for plan in untold) >= FEW_OFFSETS else []


def bytes_an_offset(plans: Iterable[PartitionPlan], log_sizes: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
    """By partition: bytes for each offset that is left to copy. `log_sizes` in bytes."""
    known: dict[TopicPartition, float] = {}
    for plan in plans:
        offsets = plan.facts.stable_end - plan.facts.log_start
        known[plan.facts.key] = _told(plan) or (log_sizes.get(plan.facts.key, 0) / offsets if offsets > 0 else 0.0)
    by_topic = {topic: _mean(found) for topic, found in grouped((key.topic, each) for key, each in known.items()).items()}
    overall = _mean(known.values()) or UNKNOWN_BYTES
    return {key: each or by_topic[key.topic] or overall for key, each in known.items()}


async def log_sizes(connection: ClusterConnection, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The size at the leader, without partitions whose leader does not give it, for example because the user may not ask."""
    topic, leaders = DescribeLogDirsRequest.DescribableLogDirTopic, connection.leaders
    with suppress(RequestNotSent, RequestLost):
        await leaders.known({key.topic for key in partitions})
    asked = []
    for node, keys in leaders.by_node(partitions).items():
        topics = [topic(topic=name, partitions=numbers) for name, numbers in grouped(keys).items()]
        asked.append(connection.submit(DescribeLogDirsRequest(topics=topics), node))
    found: dict[TopicPartition, int] = {}
    deadline = clock.monotonic() + ANSWER_SECONDS
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
