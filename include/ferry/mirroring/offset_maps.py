"""Reads what a flow's ledger says about many partitions, and makes an offset map of each.

The order makes the maps safe: the last stable offsets of the remote partitions first, then the ledger to its end, then where the logs begin
(and heads, where an operator has seeded a partition again). A record below a stable offset that was captured before is in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.partitions import TopicPartition
from ferry.copying.formats import place_of
from ferry.copying.receipts import Receipt
from ferry.copying.state import PartitionKey, fold_state
from ferry.copying.survey import read_receipts
from ferry.policy.naming import state_topic
from ferry.translation.offset_map import LogBounds, OffsetMap, seeded_again

if TYPE_CHECKING:
    from ferry.clusters.describe import TopicDescription
    from ferry.config import Flow

Topics = Mapping[str, "TopicDescription"]


@dataclass(frozen=True)
class OffsetMaps:
    """Maps by source topic and partition; partitions without one have a problem."""

    maps: Mapping[PartitionKey, OffsetMap]
    problems: Mapping[PartitionKey, str]


def read_offset_maps(flow: Flow, remote: Mapping[PartitionKey, str], source_topics: Topics, target_topics: Topics) -> OffsetMaps:
    """Maps of the source partitions that are the keys of `remote`, which names their remote topics.

    Both topics must exist. ClusterUnreachable and its kin when the ledger cannot be read to its end.
    """
    problems: dict[PartitionKey, str] = {}
    for key, topic in remote.items():
        width = target_topics[topic].partitions
        if key[1] >= width:
            problems[key] = f"topic {topic} of cluster {flow.target.alias} has only {width} partitions"
    wanted: dict[PartitionKey, TopicPartition] = {
        key: TopicPartition(topic, key[1]) for key, topic in remote.items() if key not in problems
    }
    if not wanted:
        return OffsetMaps({}, problems)
    with ClusterAdmin(flow.target) as target:
        ends, end_problems = target.end_offsets(wanted.values())
        receipts = _receipts_of_today(flow, remote, source_topics, target_topics, wanted)
        starts, start_problems = target.earliest_offsets(wanted.values())
    with ClusterAdmin(flow.source) as source:
        source_starts, source_problems = source.earliest_offsets(TopicPartition(*key) for key in wanted)
    positions = _positions(flow) if any(seeded_again(found) for found in receipts.values()) else {}
    maps = {}
    for key, place in wanted.items():
        problem = end_problems.get(place) or start_problems.get(place) or source_problems.get(key)
        if problem:
            problems[key] = problem
            continue
        source_start = source_starts[TopicPartition(*key)]
        bounds = LogBounds(source_start, starts[place], ends[place], positions.get(key), flow.exactly_once)
        maps[key] = OffsetMap(receipts.get(key, ()), bounds)
    return OffsetMaps(maps, problems)


def _receipts_of_today(
    flow: Flow, remote: Mapping[PartitionKey, str], source_topics: Topics, target_topics: Topics, wanted: Iterable[PartitionKey]
) -> dict[PartitionKey, list[Receipt]]:
    """Receipts by partition; those of topics that were recreated since, on either side, are void."""
    found: dict[PartitionKey, list[Receipt]] = {}
    for receipt in read_receipts(flow, wanted):
        key = (receipt.topic, receipt.partition)
        today = _id_of(source_topics[receipt.topic]), _id_of(target_topics[remote[key]])
        if (receipt.source_topic_id, receipt.remote_topic_id) == today:
            found.setdefault(key, []).append(receipt)
    return found


def _positions(flow: Flow) -> dict[PartitionKey, int]:
    """Positions as the heads say, after the ledger."""
    topic = state_topic(flow.source.alias)
    with InternalTopicReader(flow.target) as reader:
        state = fold_state(((record.key, record.value) for record in reader.read(topic)), place_of(flow.target, topic))
    return {key: head.position for key, head in state.heads.items()}


def _id_of(description: TopicDescription) -> str:
    """As receipts hold it: zeros for clusters without topic ids."""
    return str(UUID(description.topic_id or str(UUID(int=0))))
