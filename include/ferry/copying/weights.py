"""How many bytes a partition has left to send, estimated: lanes and Spark tasks are balanced by it (pure).

The ledger's head of a partition knows how large the records were that were copied last. For a first copy the source's log tells: its size
divided by its offsets. Where neither is known, the partition is like the others of its topic, or like the others of the run.

The size is without what a broker holds in remote storage only. So a log that is mostly there looks lighter than it is, and its lane may end
last. To tell it, Ferry would have to ask for the local start of each log too, which older brokers do not know.
"""

from collections.abc import Iterable, Mapping

from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.copying.partition_plan import PartitionPlan

# If nothing is known of any partition: then only the offsets tell partitions apart.
UNKNOWN_BYTES = 1_000.0
# Fewer offsets to copy, of all partitions that no head tells of, are no reason to ask the source for the sizes of its logs.
FEW_OFFSETS = 10_000


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


def _told(plan: PartitionPlan) -> int:
    return plan.facts.head.record_bytes if plan.facts.head is not None else 0


def _mean(values: Iterable[float]) -> float:
    found = [value for value in values if value]
    return sum(found) / len(found) if found else 0.0
