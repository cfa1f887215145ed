"""One translator for each partition that groups read: the map of the flow's ledger, of the opposite flow's, or both.

The opposite flow's ledger lies on the flow's source. Without it, or where it cannot be read, topics that came from the other cluster are
not translated; a topic that has one name on both sides is, by the flow's own ledger alone, only where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ferry.clusters.partitions import TopicPartition
from ferry.errors import FerryError
from ferry.ledger.state import PartitionKey
from ferry.policy.naming import ledger_topic
from ferry.syncs.group_routes import Route, Way
from ferry.syncs.offset_maps import OffsetMaps, Topics, read_offset_maps
from ferry.translation.merging import merged
from ferry.translation.model import Translation
from ferry.translation.offset_map import OffsetMap

if TYPE_CHECKING:
    from ferry.config import Flow


@dataclass(frozen=True)
class Translator:
    """Translates offsets of one partition. `problem` says why it cannot; then there are no maps. `unread`: as of TranslatedPosition.

    `forward`: of the flow from the groups' cluster to the other one; `back`: of the flow the other way.
    """

    forward: OffsetMap | None = None
    back: OffsetMap | None = None
    problem: str = ""
    unread: bool = False

    def translate(self, offset: int) -> Translation | None:
        """Where a group at `offset` stands on the other cluster."""
        if self.forward is not None:
            return self.forward.translate(offset) if self.back is None else merged(self.forward, self.back, offset)
        return None if self.back is None else self.back.invert(offset)

    @property
    def begin(self) -> int:
        """Where the log of the groups' cluster begins."""
        if self.forward is not None:
            return self.forward.bounds.source_start
        return 0 if self.back is None else self.back.bounds.target_start


def read_translators(flow: Flow, routes: Mapping[str, Route], home_topics: Topics, away_topics: Topics) -> dict[TopicPartition, Translator]:
    """Translators of all partitions of the topics that have a route; `flow` leads from the groups' cluster to the other one."""
    leading = {topic: route for topic, route in routes.items() if not route.problem}
    places = [
        _Place(key, leading[topic], away_topics[leading[topic].remote_topic].partitions)
        for topic in leading
        for key in (TopicPartition(topic, number) for number in range(home_topics[topic].partitions))
    ]
    onward: dict[PartitionKey, str] = {place.key: place.route.remote_topic for place in places if place.route.way is not Way.INVERSE}
    forward = read_offset_maps(flow, onward, home_topics, away_topics)
    back = _read_back(flow, places, home_topics, away_topics)
    alone = ledger_topic(flow.target.alias) not in home_topics
    found = {}
    for place in places:
        way = Way.FORWARD if place.route.way is Way.BOTH and alone else place.route.way
        problems = [] if way is Way.INVERSE else [forward.problems.get(place.key, "")]
        if way is not Way.FORWARD:
            narrow = f"topic {place.route.remote_topic} of cluster {flow.target.alias} has only {place.width} partitions"
            problems += ["" if place.key.partition < place.width else narrow, back.problems.get(place.origin, "")]
        why_not = next(filter(None, problems), "")
        unread = (way is not Way.INVERSE and place.key in forward.unread) or (way is not Way.FORWARD and place.origin in back.unread)
        found[place.key] = Translator(
            None if why_not or way is Way.INVERSE else forward.maps.get(place.key),
            None if why_not or way is Way.FORWARD else back.maps.get(place.origin),
            why_not,
            unread,
        )
    return found


@dataclass(frozen=True)
class _Place:
    """A partition that groups read. `width`: how many partitions the topic has that it leads to."""

    key: TopicPartition
    route: Route
    width: int

    @property
    def origin(self) -> TopicPartition:
        """The partition on the other cluster."""
        return TopicPartition(self.route.remote_topic, self.key.partition)


def _read_back(flow: Flow, places: Iterable[_Place], home_topics: Topics, away_topics: Topics) -> OffsetMaps:
    """Maps of the opposite flow, which copied to the topics that groups read; where there are none, that is each partition's problem."""
    wanted: dict[PartitionKey, str] = {
        place.origin: place.key.topic for place in places if place.route.way is not Way.FORWARD and place.key.partition < place.width
    }
    if not wanted:
        return OffsetMaps({}, {})
    ledger = ledger_topic(flow.target.alias)
    if ledger not in home_topics:
        why_not = f"cluster {flow.source.alias} has no topic {ledger}: what was copied from {flow.target.alias} is not known there"
        return OffsetMaps({}, dict.fromkeys(wanted, why_not))
    try:
        return read_offset_maps(replace(flow, source=flow.target, target=flow.source), wanted, away_topics, home_topics)
    except FerryError as problem:
        return OffsetMaps({}, dict.fromkeys(wanted, str(problem)), frozenset(wanted))
