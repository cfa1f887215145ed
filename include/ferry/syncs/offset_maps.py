"""Reads what a flow's ledger says about many partitions, and makes an offset map of each.

The order of reading makes the maps safe: first the last stable offsets of the remote partitions, then the ledger to its end, then where the
logs begin (and the heads, where an operator has seeded a partition again). So the ledger explains every record below such a stable offset.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.describe import TopicDescription
from ferry.clusters.partitions import TopicPartition
from ferry.config import Flow
from ferry.ledger.reading import read_own_state, read_receipts
from ferry.ledger.state import PartitionKey
from ferry.ledger.topic_ids import TopicIds, id_of, valid_receipts
from ferry.translation.offset_map import LogBounds, OffsetMap, seeded_again

Topics = Mapping[str, "TopicDescription"]


@dataclass(frozen=True)
class OffsetMaps:
    """Maps and problems by source topic and partition. `unread`: partitions that a cluster did not answer for."""

    maps: Mapping[PartitionKey, OffsetMap]
    problems: Mapping[PartitionKey, str]
    unread: frozenset[PartitionKey] = frozenset()


def read_offset_maps(
    flow: Flow, remote: Mapping[PartitionKey, str], ids: Mapping[PartitionKey, str], target_topics: Topics, *, ask_source: bool = True
) -> OffsetMaps:
    """Maps of the source partitions that are the keys of `remote`, which names their remote topics; these must exist.

    `ids`: of the source topics. `ask_source` False: the source may be unreachable, so its log starts count as 0. ClusterUnreachable and its
    kin when the ledger cannot be read to its end.
    """
    problems: dict[PartitionKey, str] = {}
    for key, topic in remote.items():
        width = target_topics[topic].partitions
        if key[1] >= width:
            problems[key] = f"topic {topic} of cluster {flow.target.alias} has only {width} partitions"
    wanted = {key: TopicPartition(topic, key[1]) for key, topic in remote.items() if key not in problems}
    if not wanted:
        return OffsetMaps({}, problems)
    with ClusterAdmin(flow.target) as target:
        ends, end_problems = target.end_offsets(wanted.values())
        today = {key: TopicIds(ids[key], id_of(target_topics[remote[key]])) for key in wanted}
        receipts = valid_receipts(read_receipts(flow, wanted), today)
        starts, start_problems = target.earliest_offsets(wanted.values())
    sources = [TopicPartition(*key) for key in wanted]
    begins, source_problems = dict.fromkeys(sources, 0), dict[tuple[str, int], str]()
    if ask_source:
        with ClusterAdmin(flow.source) as source:
            begins, source_problems = source.earliest_offsets(sources)
    heads = read_own_state(flow, settled=True).heads if any(map(seeded_again, receipts.values())) else {}
    unanswered = {key: end_problems.get(place) or start_problems.get(place) or source_problems.get(key) for key, place in wanted.items()}
    unread = {key: problem for key, problem in unanswered.items() if problem}
    maps = {}
    for key, place in wanted.items():
        if key in unread:
            continue
        position = heads[key].position if key in heads else None
        bounds = LogBounds(begins[TopicPartition(*key)], starts[place], ends[place], position, flow.exactly_once)
        maps[key] = OffsetMap(receipts.get(key, ()), bounds)
    return OffsetMaps(maps, {**problems, **unread}, frozenset(unread))
