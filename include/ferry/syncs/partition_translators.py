"""One translator for each partition that groups read: by the flow's ledger, by that of the opposite flow, or by both.

Rules from MirrorCheckpointTask and MirrorCheckpointConnector: only the flow's topic filter decides about topics. A topic that came from the
other cluster leads back to its upstream topic there, so that groups find their way back. If a policy keeps names, a topic may hold records
of both clusters.

The opposite flow's ledger is on the flow's source. If it is missing or cannot be read, topics that came from the other cluster are not
translated. A topic with one name on both sides is translated by the flow's own ledger alone only if the opposite ledger does not exist.

A partition's receipts in a ledger become an offset map. The order of reading makes the maps safe: first the last stable offsets of the
remote partitions, then the ledger to its end, then where the logs begin (and the heads, if an operator has seeded a partition again). So
the ledger explains every record below such a stable offset.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.errors import FerryError, count_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import read_receipts
from ferry.ledger.topic_ids import TopicIds, id_of, valid_receipts
from ferry.policy.naming import ledger_topic
from ferry.syncs.sync_scope import Topics
from ferry.translation.offset_map import LogBounds, OffsetMap, merged, seeded_again
from ferry.translation.translated import Translation

NameByPartition = Mapping[TopicPartition, str]  # the name of a topic, or its id


class FoundMap(NamedTuple):
    """The map of one partition, or why there is none. `unread`: because a cluster did not answer."""

    map: OffsetMap | None = None
    problem: str = ""
    unread: bool = False


OffsetMaps = dict[TopicPartition, FoundMap]
_NO_MAP = FoundMap()


def read_offset_maps(
    opened: OpenFlow, remote: NameByPartition, ids: NameByPartition, target_topics: Topics, *, ask_source: bool = True
) -> OffsetMaps:
    """Maps of the source partitions that are the keys of `remote`, which names their remote topics; these must exist.

    `ids`: of the source topics. `ask_source` False: the source may be unreachable, so its log starts count as 0. ClusterUnreachable or a
    subclass when the ledger cannot be read to its end.
    """
    flow, target = opened.flow, opened.target.admin
    narrow = ((key, _why_narrow(flow, topic, key.partition, target_topics)) for key, topic in remote.items())
    found = {key: FoundMap(problem=why) for key, why in narrow if why}
    wanted = {key: TopicPartition(topic, key[1]) for key, topic in remote.items() if key not in found}
    if not wanted:
        return found
    ends, end_problems = target.end_offsets(wanted.values())
    today = {key: TopicIds(ids[key], id_of(target_topics[remote[key]])) for key in wanted}
    receipts = valid_receipts(read_receipts(opened, wanted), today)
    starts, start_problems = target.earliest_offsets(wanted.values())
    begins, source_problems = dict.fromkeys(wanted, 0), dict[TopicPartition, str]()
    if ask_source:
        begins, source_problems = opened.source.admin.earliest_offsets(wanted)
    heads = opened.ask_anew(stable=True).answer().state.heads if any(map(seeded_again, receipts.values())) else {}
    for key, place in wanted.items():
        if problem := end_problems.get(place) or start_problems.get(place) or source_problems.get(key):
            found[key] = FoundMap(problem=problem, unread=True)
            continue
        position = heads[key].position if key in heads else None
        bounds = LogBounds(begins[key], starts[place], ends[place], position, flow.exactly_once)
        found[key] = FoundMap(OffsetMap(receipts.get(key, ()), bounds))
    return found


def _why_narrow(flow: Flow, topic: str, partition: int, target_topics: Topics) -> str:
    """The problem of a partition that its topic on the flow's target does not have; empty if it has."""
    width = target_topics[topic].partitions
    return "" if partition < width else f"topic {topic} of cluster {flow.target.alias} has only {count_of(width, 'partition')}"


@dataclass(frozen=True)
class Translator:
    """Translates offsets of one partition."""

    forward: OffsetMap | None = None  # the map of the flow from the groups' cluster to the other one
    back: OffsetMap | None = None  # the map of the opposite flow
    problem: str = ""  # why it cannot translate. Then there are no maps
    unread: bool = False  # it cannot translate because a cluster did not answer. Another try may work

    def translate(self, offset: int) -> Translation | None:
        """Where a group at `offset` stands on the other cluster."""
        if self.forward is not None:
            return self.forward.translate(offset) if self.back is None else merged(self.forward, self.back, offset)
        return None if self.back is None else self.back.invert(offset)

    def unshifted(self, offset: int | None, end: int | None) -> bool:
        """OffsetMap.unshifted, but False if an offset is not known, or if the copies are not the flow's own."""
        if self.forward is None or self.back is not None or offset is None or end is None:
            return False
        return self.forward.unshifted(offset, end)

    @property
    def begin(self) -> int:
        """Where the log of the groups' cluster begins."""
        if self.forward is not None:
            return self.forward.bounds.source_start
        return 0 if self.back is None else self.back.bounds.target_start


Translators = Mapping[str, Mapping[TopicPartition, Translator]]


def read_translators(opened: OpenFlow, routes: Mapping[str, "Route"], home_topics: Topics, other_topics: Topics) -> Translators:
    """By topic, translators of all partitions of the topics that have a route. `opened`: from the groups' cluster to the other one."""
    flow = opened.flow
    usable = [(topic, route) for topic, route in routes.items() if not route.problem]
    places = {TopicPartition(topic, number): route for topic, route in usable for number in range(home_topics[topic].partitions)}
    remote = {key: route.remote_topic for key, route in places.items() if route.by is not ByLedger.INVERSE}
    forward = read_offset_maps(opened, remote, {key: id_of(home_topics[key[0]]) for key in remote}, other_topics)
    back = _read_back(opened, places, home_topics, other_topics)
    alone = ledger_topic(flow.target.alias) not in home_topics
    found: dict[str, dict[TopicPartition, Translator]] = {}
    for key, route in places.items():
        by = ByLedger.FORWARD if route.by is ByLedger.BOTH and alone else route.by
        lacking = FoundMap(problem=_why_narrow(flow, route.remote_topic, key.partition, other_topics))
        onward = _NO_MAP if by is ByLedger.INVERSE else forward.get(key, _NO_MAP)
        backward = _NO_MAP if by is ByLedger.FORWARD else back.get(TopicPartition(route.remote_topic, key.partition), lacking)
        why_not = onward.problem or backward.problem
        unread = onward.unread or backward.unread
        both = (None, None) if why_not else (onward.map, backward.map)
        found.setdefault(key.topic, {})[key] = Translator(*both, why_not, unread)
    return found


def _read_back(opened: OpenFlow, places: Mapping[TopicPartition, "Route"], home_topics: Topics, other_topics: Topics) -> OffsetMaps:
    """Maps of the opposite flow, which copied to the topics that groups read. Without its ledger every partition has a problem."""
    flow = opened.flow
    asked = [(key, route.remote_topic) for key, route in places.items() if route.by is not ByLedger.FORWARD]
    wanted = {TopicPartition(topic, key.partition): key.topic for key, topic in asked if key.partition < other_topics[topic].partitions}
    if not wanted:
        return {}
    ledger = ledger_topic(flow.target.alias)
    if ledger not in home_topics:
        why_not = f"cluster {flow.source.alias} has no topic {ledger}: what was copied from {flow.target.alias} is not known there"
        return dict.fromkeys(wanted, FoundMap(problem=why_not))
    try:
        ids = {key: id_of(other_topics[key[0]]) for key in wanted}
        return read_offset_maps(opened.opposite(), wanted, ids, home_topics)
    except FerryError as problem:
        return dict.fromkeys(wanted, FoundMap(problem=str(problem), unread=True))


class ByLedger(Enum):
    """Whose ledger translates a topic from the groups' cluster (`home`) to the `other` one."""

    FORWARD = "by what was copied from home to other"
    INVERSE = "by what was copied from other to home"
    BOTH = "by both: the topic has the same name on both sides"


@dataclass(frozen=True)
class Route:
    """The topic on the other cluster with the same records. `problem`: why there is none; empty otherwise."""

    remote_topic: str
    by: ByLedger
    problem: str = ""


def find_route(
    flow: Flow, topic: str, home_topics: Collection[str], other_topics: Collection[str], *, by_upstream_name: bool = False
) -> Route:
    """The route of a topic that a group reads on the flow's source.

    `by_upstream_name`: the filter is about names on the flow's target, where a topic that came from there has its upstream name.
    """
    policy = flow.policy
    home, other = flow.source.alias, flow.target.alias
    came_from_other = policy.topic_source(topic) == other
    upstream = policy.upstream_topic(topic) if came_from_other else None
    if upstream is not None and upstream != topic:
        remote, by = upstream, ByLedger.INVERSE
    else:
        remote = policy.format_remote_topic(home, topic)
        by = ByLedger.BOTH if remote == topic else ByLedger.FORWARD
    name = remote if by_upstream_name and by is ByLedger.INVERSE else topic
    problem = flow.topic_filter.why_not(name)
    if not problem and by is not ByLedger.INVERSE:
        problem = flow.topic_rules.why_not(topic)
    if problem:
        problem = f"the flow does not copy the topic: {problem}"
    elif topic not in home_topics:
        problem = f"cluster {home} has no such topic, or hides it from the user"
    elif remote not in other_topics:
        problem = f"cluster {other} has no topic {remote}, or hides it from the user"
    return Route(remote, by, problem or "")
