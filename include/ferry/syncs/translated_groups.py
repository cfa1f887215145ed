"""Where every consumer group of one cluster stands on the other, in one pass over all groups. Reads only.

The groups' offsets are read first, then what partition_translators.py reads. So a record that the ledger does not explain was not on the
target when the group's offset was read. Every group and partition that is left out has a reason.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from ferry.clusters.groups.consumer_groups import ConsumerGroups, GroupOffsets
from ferry.clusters.groups.group_model import CommittedOffset, GroupListing
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.errors import ArgumentError, FerryError, NotAuthorized
from ferry.ledger.open_flow import OpenFlow
from ferry.permissions.hidden import groups_to_ask, hidden_group
from ferry.policy.custom_classes import is_custom
from ferry.policy.naming import is_ferry_group
from ferry.policy.selection import named
from ferry.syncs.group_decision import why_unsupported
from ferry.syncs.group_placing import end_offsets
from ferry.syncs.partition_translators import Route, Translator, Translators, find_route, read_translators
from ferry.translation.commit_metadata import carried, may_count_offsets
from ferry.translation.translated import Inexact, TranslatedPosition

NO_OFFSETS = "it has no offsets of topics that are copied"
# Groups of consumers, groups that only commit, and streams groups (which MirrorCheckpointConnector leaves out).
_PROTOCOLS = frozenset({"", "consumer", "streams"})
_NO_PARTITION = Translator(problem="the topic has no such partition")


@dataclass(frozen=True, slots=True)
class GroupLeftOut:
    """A group without positions. `error`: a class name of ferry.errors when reading it failed; empty when it is left out on purpose."""

    group: str
    reason: str
    error: str = ""


@dataclass(frozen=True)
class TranslatedGroups:
    """The translated groups of one cluster, also those without offsets; their positions on the other, by group, topic and partition."""

    groups: tuple[str, ...]
    positions: tuple[TranslatedPosition, ...]
    left_out: tuple[GroupLeftOut, ...]

    def by_group(self) -> dict[str, list[TranslatedPosition]]:
        """Positions by group; groups without offsets are not among them."""
        return {group: list(found) for group, found in groupby(self.positions, lambda position: position.group)}


def translated_groups(opened: OpenFlow, groups: Collection[str] | None = None, *, reverse: bool = False) -> TranslatedGroups:
    """Positions of all groups that the group filter accepts, or of those that `groups` names, whatever the filter says.

    With `reverse`, positions of the target's groups on the source. ArgumentError for names of groups that do not exist; ClusterUnreachable
    or a subclass when a cluster or the ledger cannot be read.
    """
    onward = opened.opposite() if reverse else opened
    flow, forward = opened.flow, onward.flow
    with onward.source.groups() as home:
        listed = home.list()
        chosen, left_out = _choose(forward, listed, groups)
        if groups is None:
            left_out += _hidden(forward, home, listed)
            if not reverse:
                left_out += _lacking(flow, {entry.group for entry in listed} | {entry.group for entry in left_out})
        committed: dict[str, GroupOffsets] = {}
        for group, found in home.offsets(chosen).items():
            if isinstance(found, FerryError):
                left_out.append(GroupLeftOut(group, str(found), type(found).__name__))
            else:
                committed[group] = found
    topics = {key.topic for offsets in committed.values() for key in offsets}
    left_out.sort(key=lambda entry: entry.group)
    if not topics:
        return TranslatedGroups(tuple(sorted(committed)), (), tuple(left_out))
    home_topics, away_topics = onward.source.admin.topics(), onward.target.admin.topics()
    # In a reverse pass the topic's name on the source decides, because the flow's filters are about the source.
    routes = {topic: find_route(forward, topic, home_topics, away_topics, by_upstream_name=reverse) for topic in topics}
    translators = read_translators(onward, routes, home_topics, away_topics)
    counted = _counted(committed.values(), translators)
    # Read after the offsets: an application's metadata say nothing about records from there on.
    ends = end_offsets(onward.source, counted, committed=False)
    read = (entry for group in sorted(committed) for entry in _positions(group, committed[group], routes, translators, ends))
    return TranslatedGroups(tuple(sorted(committed)), tuple(where_no_offset(forward, entry) for entry in read), tuple(left_out))


def where_no_offset(flow: Flow, position: TranslatedPosition) -> TranslatedPosition:
    """The position itself, if the group has an offset there. Otherwise the group begins where the copies begin, which is not exact, or
    keeps its auto.offset.reset, which no broker knows (ferry.groups.latest)."""
    there = position.translation
    if position.upstream_offset is not None or there is None:
        return position
    if flow.groups_latest.fullmatch(position.group):
        return replace(position, translation=None, problem=f"{position.problem}: by ferry.groups.latest its auto.offset.reset decides")
    return replace(position, translation=replace(there, reason=there.reason or Inexact.NO_OFFSET))


def _choose(flow: Flow, listed: Iterable[GroupListing], named: Collection[str] | None) -> tuple[list[str], list[GroupLeftOut]]:
    """Groups to translate, and the others with the reason."""
    known = {entry.group: entry for entry in listed}
    unknown = sorted(set(named or ()) - set(known))
    if unknown:
        raise ArgumentError(f"cluster {flow.source.alias} has no group {', '.join(unknown)} that the user may describe")
    accepted = flow.group_filter
    chosen, left_out = [], []
    for group, entry in known.items():
        if named is not None and group not in named:
            continue
        reason = _unsupported(entry, flow.source.alias) or (accepted.why_not(group) if named is None else None)
        if reason is None:
            chosen.append(group)
        else:
            left_out.append(GroupLeftOut(group, reason))
    return chosen, left_out


def _hidden(flow: Flow, home: ConsumerGroups, listed: Iterable[GroupListing]) -> list[GroupLeftOut]:
    """Groups of the filter that the cluster hides: its listing leaves them out without an error."""
    asked = groups_to_ask(flow, frozenset(entry.group for entry in listed))
    refused = [name for name, answer in home.offsets(sorted(asked)).items() if isinstance(answer, NotAuthorized)] if asked else []
    found = [hidden_group(flow.source, name, asked[name]) for name in refused]
    return [GroupLeftOut(entry.name, entry.problem, NotAuthorized.__name__) for entry in found]


def _lacking(flow: Flow, known: Collection[str]) -> list[GroupLeftOut]:
    """Groups that the flow names one by one, and that the source has not."""
    lacking = set() if is_custom(flow.mirroring.group_filter_class) else named(flow.mirroring.groups).difference(known)
    return [GroupLeftOut(name, f"cluster {flow.source.alias} has no such group, though groups names it") for name in sorted(lacking)]


def _counted(committed: Iterable[GroupOffsets], translators: Translators) -> list[TopicPartition]:
    """The partitions with a translator about which an application's metadata may say something."""
    counted = {key for offsets in committed for key, found in offsets.items() if may_count_offsets(found.metadata)}
    return [key for key in counted if key in translators.get(key.topic, ())]


def _unsupported(entry: GroupListing, alias: str) -> str:
    if is_ferry_group(entry.group):
        return "Ferry's own group"
    if not (reason := why_unsupported(entry, alias)) and entry.protocol_type not in _PROTOCOLS:
        return f"it is a group of protocol type {entry.protocol_type}: Ferry translates only offsets of consumers' groups"
    return reason


def _positions(
    group: str, committed: GroupOffsets, routes: Mapping[str, Route], translators: Translators, ends: Mapping[TopicPartition, int]
) -> Iterator[TranslatedPosition]:
    """One position for each partition of the topics that the group has offsets in, and for each that it has an offset for."""
    read = {key.topic for key in committed}
    for key in sorted({*committed, *(key for topic in read for key in translators.get(topic, ()))}):
        translator = translators.get(key.topic, {}).get(key, _NO_PARTITION)
        yield _position(group, key, committed.get(key), routes[key.topic], translator, ends.get(key))


def _position(  # noqa: PLR0917 - one partition, and what is known of it
    group: str, key: TopicPartition, committed: CommittedOffset | None, route: Route, translator: Translator, end: int | None
) -> TranslatedPosition:
    offset = None if committed is None or committed.offset < 0 else committed.offset
    metadata = "" if committed is None else committed.metadata
    problem = route.problem or translator.problem
    translation, unread = None, translator.unread and not route.problem
    if not problem:
        translation = translator.translate(translator.begin if offset is None else offset)
        if offset is None:
            problem = "the group has no offset there" if committed is None else "the group has a null offset there"
    kept, translation = carried(metadata, translation, unshifted=translator.unshifted(offset, end))
    return TranslatedPosition(group, *key, route.remote_topic, offset, translation, kept, problem, unread, metadata)
