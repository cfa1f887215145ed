"""Reads what a flow's ledger says about many partitions, and makes an offset map of each.

The order of reading makes the maps safe: first the last stable offsets of the remote partitions, then the ledger to its end, then where the
logs begin (and the heads, where an operator has seeded a partition again). So the ledger explains every record below such a stable offset.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.describe import TopicDescription
from ferry.clusters.partitions import TopicPartition
from ferry.config import Flow
from ferry.ledger.reading import read_own_state, read_receipts
from ferry.ledger.state import Head, PartitionKey
from ferry.ledger.topic_ids import TopicIds, id_of, valid_receipts
from ferry.translation.offset_map import LogBounds, OffsetMap, seeded_again

Topics = Mapping[str, "TopicDescription"]
Offsets = tuple[Mapping[PartitionKey, int], Mapping[PartitionKey, str]]


@dataclass(frozen=True)
class OffsetMaps:
    """Maps and problems by source topic and partition. `unread`: partitions that a cluster did not answer for."""

    maps: Mapping[PartitionKey, OffsetMap]
    problems: Mapping[PartitionKey, str]
    unread: frozenset[PartitionKey] = frozenset()


def read_offset_maps(flow: Flow, remote: Mapping[PartitionKey, str], source_topics: Topics, target_topics: Topics) -> OffsetMaps:
    """Maps of the source partitions that are the keys of `remote`, which names their remote topics.

    Both topics must exist. ClusterUnreachable and its kin when the ledger cannot be read to its end.
    """

    def source_starts(wanted: Iterable[PartitionKey]) -> Offsets:
        with ClusterAdmin(flow.source) as source:
            starts, problems = source.earliest_offsets(TopicPartition(*key) for key in wanted)
        return {(key.topic, key.partition): start for key, start in starts.items()}, problems

    ids = {key: id_of(source_topics[key[0]]) for key in remote}
    return _read(flow, remote, ids, target_topics, source_starts)


def read_offset_maps_of_heads(flow: Flow, heads: Mapping[PartitionKey, Head], target_topics: Topics) -> OffsetMaps:
    """The same without asking the source, which may be unreachable. Topic ids are those of the heads; log starts count as 0."""
    remote = {key: head.remote_topic for key, head in heads.items() if head.remote_topic in target_topics}
    ids = {key: heads[key].source_topic_id for key in remote}
    return _read(flow, remote, ids, target_topics, lambda wanted: (dict.fromkeys(wanted, 0), {}))


def _read(
    flow: Flow,
    remote: Mapping[PartitionKey, str],
    ids: Mapping[PartitionKey, str],
    target_topics: Topics,
    source_starts: Callable[[Iterable[PartitionKey]], Offsets],
) -> OffsetMaps:
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
        today = {key: TopicIds(ids[key], id_of(target_topics[remote[key]])) for key in wanted}
        receipts = valid_receipts(read_receipts(flow, wanted), today)
        starts, start_problems = target.earliest_offsets(wanted.values())
    begins, source_problems = source_starts(wanted)
    heads = read_own_state(flow, settled=True).heads if any(map(seeded_again, receipts.values())) else {}
    unanswered = {key: end_problems.get(place) or start_problems.get(place) or source_problems.get(key) for key, place in wanted.items()}
    unread = {key: problem for key, problem in unanswered.items() if problem}
    maps = {}
    for key, place in wanted.items():
        if key in unread:
            continue
        position = heads[key].position if key in heads else None
        bounds = LogBounds(begins[key], starts[place], ends[place], position, flow.exactly_once)
        maps[key] = OffsetMap(receipts.get(key, ()), bounds)
    return OffsetMaps(maps, {**problems, **unread}, frozenset(unread))
