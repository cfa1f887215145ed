"""Which topics of a source a flow copies (pure): filters, internal topics, cycles, heartbeats.

Rules from MirrorSourceConnector: `(filter or heartbeats) and not internal and not cycle`, as in Kafka 4.4, where `A.x` on cluster A is a
cycle too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferry.policy.filters import TopicFilter
from ferry.policy.naming import HEARTBEATS, ReplicationPolicy, is_ferry_topic, original_topic, policy_for

if TYPE_CHECKING:
    from ferry.config import Flow

_PLAIN_NAME = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True)
class Selection:
    """Topics to copy as (source topic, remote topic), and the others with the reason."""

    selected: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]


def select_topics(flow: Flow, names: Iterable[str]) -> Selection:
    """Decide for every topic of the source."""
    policy = policy_for(flow)
    topic_filter = TopicFilter(flow.topics, flow.topics_exclude)
    selected, skipped = [], []
    for name in sorted(names):
        reason = why_not(name, flow.source.alias, flow.target.alias, policy, topic_filter)
        if reason is None:
            selected.append((name, policy.format_remote_topic(flow.source.alias, name)))
        else:
            skipped.append((name, reason))
    return Selection(tuple(selected), tuple(skipped))


def named_topics(flow: Flow, seen: Iterable[str]) -> tuple[str, ...]:
    """Entries of `topics` that match nothing of what was seen, and are plain names: such a topic is missing, or hidden from the user."""
    names = set(seen)
    plain = [entry for entry in flow.topics if entry not in names and _PLAIN_NAME.fullmatch(entry)]
    plain = [entry for entry in plain if not any(re.fullmatch(entry, name) for name in names)]
    return tuple(name for name, _ in select_topics(flow, plain).selected)


def why_not(name: str, source: str, target: str, policy: ReplicationPolicy, topic_filter: TopicFilter) -> str | None:
    """The reason for not copying `name` from `source` to `target`; None when it is copied."""
    if is_ferry_topic(name):
        return "Ferry's own topic"
    if policy.is_internal(name):
        return "internal topic"
    if is_cycle(name, source, target, policy):
        return f"cycle: it came from {target} or {source}"
    if original_topic(policy, name) == HEARTBEATS:
        return None
    return topic_filter.why_not(name)


def is_cycle(name: str, source: str, target: str, policy: ReplicationPolicy) -> bool:
    """Whether copying `name` would send records back to where they came from."""
    origin = policy.topic_source(name)
    while origin is not None:
        if origin == target or (policy.renames and origin == source):
            return True
        upstream = policy.upstream_topic(name)
        if upstream is None or upstream == name:
            return False
        name, origin = upstream, policy.topic_source(upstream)
    return False
